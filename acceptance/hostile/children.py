"""Functions in processes of their own."""

import multiprocessing
import resource
import traceback

# Children have no threads to lose: they are made while this process has one thread only.
PROCESSES = multiprocessing.get_context("fork")
STOP_SECONDS = 20


class Child:
    """A function in a process of its own. It gets an event that tells it to stop, and what it
    returns is its report."""

    def __init__(self, function, *arguments):
        self._name = function.__name__
        self._stop = PROCESSES.Event()
        self._reports, reports = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(
            target=run, args=(reports, function, arguments, self._stop), daemon=True)
        self._process.start()
        reports.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def is_over(self):
        """Whether it has ended, or failed, before it was told to."""
        return self._reports.poll()

    def stop(self):
        """Has it end and returns its report."""
        self._stop.set()
        if not self._reports.poll(STOP_SECONDS):
            raise AssertionError(f"{self._name} does not stop")
        error, report = self._reports.recv()
        self._process.join()
        if error:
            raise AssertionError(f"{self._name} failed: {error}")
        return report


def run(reports, function, arguments, stop):
    """The body of a child."""
    try:
        reports.send((None, function(*arguments, stop)))
    except Exception as error:  # whatever it is, the parent tells it
        traceback.print_exc()
        reports.send((f"{type(error).__name__}: {error}", None))


def raise_descriptor_limit():
    """Lets this process and its children have as many descriptors as the system allows."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
