"""Every test run can judge a compiler: the grader's plugin gives the fixture `judge`."""

pytest_plugins = ["grader.plugin"]
