"""Cases: data directories that a node must not take."""

import os

from cases import expect, expect_equal, work_directory
from node import Node, free_port, run_to_end


def declare(cases):
    """In the order of running."""
    for function in (second_node_is_refused, directory_with_foreign_files_is_refused,
                     directory_that_is_a_file_is_refused, port_in_use_is_refused,
                     what_a_node_makes_is_its_users_alone):
        cases.case(function)


def serve(directory, port):
    """Status and output of a node that must refuse to serve."""
    return run_to_end(["serve", "--data-dir", directory, "--port", str(port),
                       "--management-port", str(free_port()),
                       "--user", "Administrator", "--password", "password"])


def expect_refusal(outcome, *words):
    """The node ended with an error that has all these words and is no panic."""
    status, output = outcome
    expect(status > 0, f"the status is an error, not {status}: {output}")
    for word in words:
        expect(word in output, f"the message names {word!r}: {output}")
    expect("panicked" not in output, f"an operating error is no bug: {output}")


def second_node_is_refused():
    with Node("first") as node:
        expect_refusal(serve(node.data_directory, free_port()), node.data_directory, "another node")
        expect(node.is_running(), "the first node goes on")
        node.stop()


def directory_with_foreign_files_is_refused():
    directory = os.path.join(work_directory(), "foreign")
    os.makedirs(directory)
    with open(os.path.join(directory, "holiday.jpg"), "w", encoding="utf-8") as file:
        file.write("not a database")
    expect_refusal(serve(directory, free_port()), directory, "holiday.jpg")
    expect_equal(os.listdir(directory), ["holiday.jpg"], "content of the foreign directory")


def directory_that_is_a_file_is_refused():
    path = os.path.join(work_directory(), "plain-file")
    with open(path, "w", encoding="utf-8") as file:
        file.write("not a directory")
    expect_refusal(serve(path, free_port()), path)


def port_in_use_is_refused():
    with Node("occupant") as node:
        directory = os.path.join(work_directory(), "late")
        expect_refusal(serve(directory, node.port), str(node.port))
        node.stop()


def what_a_node_makes_is_its_users_alone():
    """Whatever the umask is; users of an earlier version, too."""
    before = os.umask(0o022)
    try:
        with Node("private") as node:
            node.stop()
            users = os.path.join(node.data_directory, "users.json")
            os.chmod(users, 0o644)
            node.start()
            paths = [node.data_directory, node.ready_path]
            for directory, directories, names in os.walk(node.data_directory):
                paths += [os.path.join(directory, name) for name in directories + names]
            expect(len(paths) > 5, f"there are files: {paths}")
            lax = [path for path in paths if os.stat(path).st_mode & 0o077]
            expect_equal(lax, [], "files and folders that others may use")
            node.stop()
    finally:
        os.umask(before)
