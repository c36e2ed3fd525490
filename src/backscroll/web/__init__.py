"""The web app: server-rendered pages over the whole history.

    server.py             listen, open a browser, shut down; one server per archive
    app.py                routes and middleware
    pages/                one module per page
    serving/              the served histories, their threads and processes
    figures/              numbers of the home page
    api/                  the JSON API and its OpenAPI description
    transcript_window.py  a part of a session as HTML
    minimap.py            a whole session as a narrow column of links
    charts.py             calendars and bars as SVG
    session_query.py      filters of the session list as a URL
    session_find.py       find in a session
    search_mode.py        kinds of search as a URL
    urls.py               addresses of sessions and messages
    labels.py             labels of values with the same name
    page_facts.py         facts that every page shows
    templating.py         Jinja environment and filters
    static_files.py       style sheet and scripts
    headers.py            security headers
    errors.py             error pages

Pages work without JavaScript. Scripts only add to them.
"""
