"""Cases: tools that are used at a terminal, in a pseudo terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from cases import expect, expect_equal, work_directory
from typing_in import Typist, place_of, settee

PATIENCE_SECONDS = 20
PLACE = re.compile(r"\x1b\[[0-9]+;[0-9]+H")
ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>78])")


class Terminal:
    """A command at a terminal of so many rows and columns, and what it has shown."""

    def __init__(self, environment, *words, rows=40, columns=100):
        self._master, slave = pty.openpty()
        self._resize(slave, rows, columns)
        self.shown = ""
        self._process = subprocess.Popen(
            [os.environ["SETTEE_BINARY"], *words], stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, "TERM": "xterm", **environment}, start_new_session=True)
        self.modes = termios.tcgetattr(slave)
        self._slave = slave

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._slave)
        os.close(self._master)

    @staticmethod
    def _resize(end, rows, columns):
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        """Gives the terminal another size, as a window manager does."""
        self._resize(self._slave, rows, columns)
        self._process.send_signal(signal.SIGWINCH)

    def interrupt(self):
        """What Ctrl-C does while the terminal takes it for a signal."""
        self._process.send_signal(signal.SIGINT)

    def type(self, text):
        """Presses keys."""
        self.paste(text.encode())

    def paste(self, content):
        """Has bytes come from the keyboard."""
        os.write(self._master, content)

    def _read(self, seconds=0.05):
        """Reads what there is, or comes within these seconds; tells whether there was something."""
        is_there = bool(select.select([self._master], [], [], seconds)[0])
        if is_there:
            self.shown += os.read(self._master, 65536).decode(errors="replace")
        return is_there

    def wait_for(self, text):
        """Reads until this is shown; what was shown up to it is forgotten."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in ESCAPE.sub("", self.shown):
            expect(time.monotonic() < deadline, f"{text!r} is shown: {self.shown[-600:]!r}")
            self._read()
        # What stands behind it is for the next one who waits.
        self.shown = ESCAPE.sub("", self.shown).partition(text)[2]

    def wait_for_raw(self, text):
        """The same for what a terminal acts on."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            expect(time.monotonic() < deadline, f"{text!r} comes: {self.shown[-600:]!r}")
            self._read()

    def wait_for_end(self):
        """The status with which the command ends; the terminal is as it was."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._process.poll() is None:
            expect(time.monotonic() < deadline, "it ends")
            self._read()
        # What it has said last may not have been read when it has ended.
        while self._read(seconds=0):
            pass
        expect_equal(termios.tcgetattr(self._slave), self.modes, "the terminal's modes")
        return self._process.returncode


def top_draws_its_page_and_gives_the_terminal_back(nodes, threads):
    """Over a resize, until q is pressed; and once, where there is no terminal."""
    node = nodes.of(threads)
    with Terminal(place_of(node), "top", "--interval", "0.2") as terminal:
        terminal.wait_for_raw("\x1b[?1049h")
        terminal.wait_for("operations")
        terminal.wait_for("connections")
        terminal.resize(4, 30)
        terminal.wait_for_raw("\x1b[4;1H")
        terminal.shown = ""
        terminal.wait_for_raw("\x1b[4;1H")
        terminal.wait_for_raw("\x1b[1;1H")
        lines = [ESCAPE.sub("", line) for line in PLACE.split(terminal.shown)]
        expect(all(len(line) <= 30 for line in lines[-5:]), f"it fits: {lines}")
        expect("\x1b[5;1H" not in terminal.shown, "rows that there are not")
        terminal.type("q")
        expect_equal(terminal.wait_for_end(), 0, "q ends it")
        expect("\x1b[?1049l" in terminal.shown or terminal.shown == "", "the screen of before")
    for key in ("\x1b", "\x03"):
        with Terminal(place_of(node), "top", "--interval", "0.2") as terminal:
            terminal.wait_for("operations")
            terminal.type(key)
            expect_equal(terminal.wait_for_end(), 0, f"{key!r} ends it")
    page = Typist(node)("top", "--interval", "0.2").out
    expect("operations" in page and "\x1b" not in page, f"one page for scripts: {page}")


def a_shell_has_history_and_completes(nodes, threads):
    """Lines are typed, completed by the tabulator, and found again by the next shell."""
    node = nodes.of(threads)
    home = os.path.join(work_directory(), f"home-{threads}")
    os.makedirs(home)
    environment = {**place_of(node), "HOME": home}
    with Terminal(environment, "shell") as terminal:
        terminal.wait_for("settee> ")
        terminal.type("set typed 'in a shell'\r")
        terminal.wait_for("settee> ")
        terminal.type("ge\t")
        terminal.wait_for("get ")
        terminal.type("typed\r")
        terminal.wait_for("in a shell")
        terminal.type("monitor 1\r")
        terminal.wait_for("SHARE")
        terminal.wait_for("settee> ")
        terminal.type("monitor 600\r")
        terminal.wait_for("SHARE")
        terminal.interrupt()
        terminal.wait_for("settee> ")
        terminal.type("nonsense\r")
        terminal.wait_for("unrecognized")
        terminal.wait_for("settee> ")
        terminal.paste(b"get gr\xfc\xdfe")
        terminal.wait_for("no UTF-8")
        terminal.wait_for("settee> ")
        terminal.type("\x03")
        terminal.wait_for("settee> ")
        terminal.type("\x04")
        expect_equal(terminal.wait_for_end(), 0, "Ctrl-D ends it")
    with open(os.path.join(home, ".settee_history"), encoding="utf-8") as history:
        expect("get typed" in history.read(), "what was typed is kept")
    with Terminal(environment, "shell") as terminal:
        terminal.wait_for("settee> ")
        terminal.type("\x1b[A" * 4)
        terminal.wait_for("get typed")
        terminal.type("\r")
        terminal.wait_for("in a shell")
        terminal.type("exit\r")
        expect_equal(terminal.wait_for_end(), 0, "exit ends it")


def a_shell_carries_lines_out(nodes, threads):
    """From a pipe: every order, and an exit code that tells of a line that failed."""
    typed = Typist(nodes.of(threads))
    said = typed("shell", stdin=b"set a 'b c'\nget a\nset n 1\nincr n 5\ntouch a 100\n"
                                b"# a remark\n\nstats\nlatency get_cmd\nslowlog\nhelp get\n"
                                b"use _default._default\nbigkeys --samples 100\nhotkeys 1\n"
                                b"delete a n\nexit\nget a\n")
    for part in ("b c\n", "6\n", "curr_items ", "get_cmd", "documents were looked at", "SHARE",
                 "Show a document", "nothing was slow"):
        expect(part in said.out or part == "nothing was slow", f"{part!r}: {said.out}")
    said = typed("shell", stdin=b"get none\nset k v\nget k\nnonsense\n", status=1)
    expect("v\n" in said.out and "nonsense" in said.err, "lines behind one that failed go on")


def colours_are_for_terminals(nodes, threads):
    """And not where NO_COLOR is set; a terminal gets a line break behind a document."""
    node = nodes.of(threads)
    settee("set", "plain", "body", environment=place_of(node))
    with Terminal(place_of(node), "get", "plain") as terminal:
        terminal.wait_for("body\r\n")
        expect_equal(terminal.wait_for_end(), 0, "a document")
    for no_color, expected in (("", True), ("1", False)):
        with Terminal({**place_of(node), "NO_COLOR": no_color}, "get", "--nonsense") as terminal:
            terminal.wait_for_raw("--nonsense")
            terminal.wait_for_end()
            expect_equal("\x1b[" in terminal.shown, expected, f"with NO_COLOR={no_color!r}")


CASES = (top_draws_its_page_and_gives_the_terminal_back, a_shell_has_history_and_completes,
         a_shell_carries_lines_out, colours_are_for_terminals)
