"""A history as the web app serves it: worker threads, live changes, sync and backups.

There are two: the user's history and, for browsers with a cookie, the demo.
"""

from collections.abc import Callable
from threading import Lock

from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from backscroll.history import History
from backscroll.history.background.sync_thread import SyncThread
from backscroll.history.demo_archive import DemoArchive
from backscroll.model.sync import SyncStatus
from backscroll.web.serving.backup_job import BackupJob
from backscroll.web.serving.change_feed import ChangeFeed
from backscroll.web.serving.workers import Workers

__all__ = ["Histories", "HistorySelector", "ServedHistory", "demo_cookie", "served_history"]


class ServedHistory:
    """One history with its threads. With ``auto_sync``, it is kept up to date."""

    def __init__(
        self, open_history: Callable[[], History], *, auto_sync: bool, is_demo: bool = False
    ) -> None:
        self.is_demo = is_demo
        self.workers = Workers(open_history)
        self.backup_job = BackupJob(open_history)
        self.feed = ChangeFeed(self.sync_status)
        self._sync: SyncThread | None = None
        if auto_sync:
            self._sync = SyncThread(
                open_history, "backscroll serve", self.feed.publish, self.feed.publish_sync
            )

    def sync_status(self) -> SyncStatus:
        """Return the progress of the first sync."""
        return self._sync.status if self._sync is not None else SyncStatus(is_complete=True)

    def start(self) -> None:
        """Start to sync. Called in the event loop."""
        self.feed.start()
        if self._sync is not None:
            self._sync.start()

    def close(self) -> None:
        """Stop all threads."""
        if self._sync is not None:
            self._sync.close()
        self.backup_job.close()
        self.workers.close()


class Histories:
    """The user's history, and the demo if it was written."""

    def __init__(self, open_history: Callable[[], History], *, auto_sync: bool) -> None:
        self._open_history = open_history
        self._own = ServedHistory(open_history, auto_sync=auto_sync)
        self._demo: ServedHistory | None = None
        self._write_lock = Lock()

    def start(self) -> None:
        self._own.start()

    def close(self) -> None:
        self._own.close()
        if self._demo is not None:
            self._demo.close()

    def choose(self, *, is_demo: bool) -> ServedHistory:
        """Return the demo if it is wanted and was written, else the user's history. In the event loop."""
        if not is_demo:
            return self._own
        if self._demo is None:
            archive = self._demo_archive()
            if not archive.is_written:
                return self._own
            self._demo = ServedHistory(archive.open, auto_sync=False, is_demo=True)
            self._demo.start()
        return self._demo

    def write_demo(self) -> None:
        """Write the demo, unless it is there. In any thread. Raises `DestinationError`."""
        with self._write_lock:
            self._demo_archive().write()

    def _demo_archive(self) -> DemoArchive:
        return DemoArchive(self._open_history())


class HistorySelector:
    """ASGI middleware that sets the history of a request."""

    def __init__(self, app: ASGIApp, histories: Histories) -> None:
        self._app = app
        self._histories = histories

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            cookies = "; ".join(
                value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"
            )
            is_demo = cookie_parser(cookies).get(demo_cookie(scope["server"][1])) == "1"
            scope.setdefault("state", {})["served"] = self._histories.choose(is_demo=is_demo)
        await self._app(scope, receive, send)


def served_history(request: Request) -> ServedHistory:
    """Return the history of a request."""
    served: ServedHistory = request.state.served
    return served


def demo_cookie(port: int) -> str:
    """Return the name of the cookie that chooses the demo. Servers on other ports share the cookies."""
    return f"backscroll-demo-{port}"
