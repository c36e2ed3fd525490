"""The web app: server-rendered pages over the whole history.

    server.py             listen, open a browser, shut down; one server per archive
    app.py                routes and middleware
    pages/                one module per page
    api/                  the JSON API and its OpenAPI description
    backup_job.py         create and verify a backup in a thread
    live.py               changes as server-sent events
    transcript_window.py  a part of a session as HTML
    charts.py             calendars and bars as SVG
    session_query.py      filters of the session list as a URL
    urls.py               addresses of sessions and messages
    templating.py         Jinja environment and filters
    static_files.py       style sheet and scripts
    headers.py            security headers
    errors.py             error pages
    workers.py            threads with a History each

Pages work without JavaScript. Scripts only add to them.
"""
