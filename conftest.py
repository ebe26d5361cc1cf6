"""Every test run can judge a compiler: the grader's plugins give `judge` and `contest`."""

pytest_plugins = ["grader.plugin", "grader.bench.fixtures"]
