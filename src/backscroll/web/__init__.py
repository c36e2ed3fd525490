"""The web app: server-rendered pages over the whole history.

    server.py             listen, open a browser, shut down; one server per archive
    routes.py             the address of each page, form and part
    pages/                one module per page
    templates/, static/   their HTML; style sheets and scripts
    app.py                the app: middleware, security headers, the token of a browser
    api.py                the JSON API and its OpenAPI description
    served_history.py     the served histories: sync, live changes, backups, cached results
    transcript_window.py  a part of a session as HTML
    charts.py             calendars and bars as SVG
    urls.py               addresses of pages, and the queries in them
    templating.py         Jinja environment and filters, facts of every page, static files
    errors.py             error pages

Pages work without JavaScript. Scripts only add to them.
"""
