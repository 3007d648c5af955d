"""Damage to one file of a node that is stopped."""

import os
import random
import shutil

# vBuckets' files only: `7.couch.3`.
MARK = ".couch."


def damage(bucket_directory, kind, draw):
    """Damages a random file with anything in it; says which, or nothing if there is none."""
    dice = random.Random(draw)
    names = sorted(name for name in os.listdir(bucket_directory) if is_data_file(name))
    paths = [os.path.join(bucket_directory, name) for name in names]
    paths = [path for path in paths if os.path.isfile(path) and os.path.getsize(path) > 4096]
    if not paths:
        return None
    path = dice.choice(paths)
    DAMAGES[kind](path, dice)
    return path


def is_data_file(name):
    """Whether it is a vBucket's file by its name."""
    vbucket, mark, revision = name.partition(MARK)
    return bool(mark) and vbucket.isdigit() and revision.isdigit()


def flip_bit(path, dice):
    """One bit is another."""
    with open(path, "r+b") as file:
        position = dice.randrange(os.path.getsize(path))
        file.seek(position)
        byte = file.read(1)[0] ^ 1 << dice.randrange(8)
        file.seek(position)
        file.write(bytes([byte]))


def cut(path, dice):
    """The end is missing."""
    os.truncate(path, dice.randrange(os.path.getsize(path)))


def remove(path, _dice):
    """The file is gone."""
    os.remove(path)


def make_unreadable(path, dice):
    """What has its name cannot be read: root may read whatever has the wrong mode."""
    os.remove(path)
    if dice.random() < 0.5:
        os.mkdir(path)
    else:
        os.symlink("/nonexistent/file", path)


def mend(path):
    """Removes what stands in the place of an unreadable file, so that files can be verified."""
    if os.path.islink(path):
        os.remove(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)


DAMAGES = {"bit": flip_bit, "cut": cut, "removed": remove, "unreadable": make_unreadable}
