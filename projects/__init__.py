"""Projects built on the weeks."""
