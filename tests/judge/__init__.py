"""Tests that run the genuine Claude Code and compare what Backscroll returns with what was scripted.

    versions.py      version numbers, and a selection spread over all published ones
    install.py       install versions from npm into a cache outside of the repository
    launcher.py      runs inside a network namespace: connects the tool to the scripted model
    blocks.py        content blocks of an answer
    script.py        answers of the scripted model, and a record of every exchange
    model_server.py  HTTP server in place of the model
    stage.py         one scenario: folders, environment, and runs of the tool
    stream.py        a run that reads prompts and control requests from standard input
    terminal.py      a run in a terminal (tmux)
    mcp_server.py    MCP server with tools that return text, an image and a resource, or fail
    safekeeping.py   commands that restore, move and copy sessions, and what the tool sends afterwards
    expectation.py   what a scenario should leave behind, by session and subagent
    comparison.py    differences between that and what Backscroll returns

The tests run with `make test-judge` only. The tool is proprietary: it is installed for the tests, and nothing
that it writes is committed.
"""
