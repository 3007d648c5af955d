"""The line between two nodes, which can be cut."""

import socket
import threading

from node import HOST


class Proxy:
    """Passes bytes on between whoever connects and a port. While it is cut it passes nothing:
    `silent` lines stay open, others are closed."""

    def __init__(self, target):
        self._target = target
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._sockets = []
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Ends everything."""
        self._is_closed = True
        self._open.set()
        self._listener.close()
        self._drop()

    def cut(self, silent):
        """From now on nothing passes."""
        self._open.clear()
        if not silent:
            self._drop()

    def heal(self):
        """Bytes pass again. Lines that were silent are closed: their peers may have given up."""
        self._open.set()
        self._drop()

    def _drop(self):
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for end in sockets:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def _accept(self):
        while not self._is_closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                near.close()
                continue
            try:
                far = socket.create_connection((HOST, self._target), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while piece := source.recv(1 << 16):
                self._open.wait()
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
