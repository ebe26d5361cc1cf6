"""Week 3: movement ops become loop nests."""
