"""Cases: caches, sessions, limits and locks of Python's frameworks on the memcached port."""

import asyncio
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import aiocache
import django
import flask_caching
import flask_session
import limits
import pymemcache
from aiocache.lock import OptimisticLock, RedLock
from cases import Cases, expect, expect_equal, wait_until
from django.conf import settings
from django.core.cache import caches
from dogpile.cache import make_region
from flask import Flask, session

BACKENDS = {"pymemcache": "PyMemcacheCache", "pylibmc": "PyLibMCCache"}
GONE_SECONDS = 5


def server():
    """Where the memcached port is."""
    return f"127.0.0.1:{os.environ['SETTEE_MEMCACHED_PORT']}"


def configure_django():
    """A project with a cache of each backend, and sessions in the first."""
    settings.configure(
        SECRET_KEY="signs", SESSION_ENGINE="django.contrib.sessions.backends.cache",
        SESSION_CACHE_ALIAS="pymemcache", CACHES={
            name: {"BACKEND": f"django.core.cache.backends.memcached.{backend}",
                   "LOCATION": server(), "KEY_PREFIX": name}
            for name, backend in {"default": "PyMemcacheCache", **BACKENDS}.items()})
    django.setup()


def django_caches():
    for name in BACKENDS:
        cache = caches[name]
        many = {f"m-{number}": number for number in range(300)}
        cache.set("document", {"parts": (1, 2)}, 60)
        expect_equal(cache.get("document"), {"parts": (1, 2)}, "a pickled value")
        expect(not cache.add("document", 1) and cache.add("counter", 1), "what is new is added")
        expect_equal((cache.incr("counter", 5), cache.decr("counter", 2)), (6, 4), "the counter")
        expect_equal(cache.get_or_set("lazy", lambda: 9), 9, "what was made")
        expect_equal(cache.set_many(many), [], "keys that failed")
        cache.delete_many(["m-1", "m-2"])
        expect_equal(len(cache.get_many(many)), 298, "values that are left")
        cache.set("versioned", 1, version=2)
        expect_equal(cache.incr_version("versioned", version=2), 3, "the version")
        expect(cache.touch("document", 1) and not cache.touch("none"), "only what is there is kept")
        cache.set("never", 1, timeout=0)
        expect_equal(cache.get("never"), None, "what ends at once")
        cache.set("next-year", 1, timeout=400 * 24 * 3600)
        expect_equal(cache.get("next-year"), 1, "what ends at a time")
        wait_until(lambda: cache.get("document") is None, GONE_SECONDS, "what was touched ends")
        cache.clear()
        expect_equal(cache.get("counter"), None, "what is behind a flush")


def django_sessions():
    from django.contrib.sessions.backends.cache import SessionStore
    store = SessionStore()
    store["name"] = "Ann"
    store.save()
    key = store.session_key
    expect_equal(SessionStore(key)["name"], "Ann", "the session")
    store.cycle_key()
    expect_equal(SessionStore(store.session_key)["name"], "Ann", "the session under its new key")
    expect(not SessionStore(key).exists(key), "the old key is gone")


def flask_caches():
    application = Flask("caches")
    cache = flask_caching.Cache(application, config={
        "CACHE_TYPE": "MemcachedCache", "CACHE_MEMCACHED_SERVERS": [server()],
        "CACHE_KEY_PREFIX": "flask-"})
    calls = []
    with application.app_context():
        @cache.memoize(timeout=60)
        def square(number):
            calls.append(number)
            return number * number
        expect_equal((square(3), square(3), calls), (9, 9, [3]), "what is memoized")
        cache.delete_memoized(square)
        expect_equal((square(3), calls), (9, [3, 3]), "what is memoized anew")
        cache.set_many({"one": 1, "two": 2})
        expect_equal(cache.get_many("one", "two", "three"), [1, 2, None], "many")
        cache.set("brief", 1, timeout=1)
        wait_until(lambda: cache.get("brief") is None, GONE_SECONDS, "a brief value ends")


def flask_sessions():
    application = Flask("sessions")
    application.config.update(SESSION_TYPE="memcached", SECRET_KEY="signs",
                              SESSION_MEMCACHED=pymemcache.Client(server()))
    flask_session.Session(application)

    @application.route("/")
    def count():
        session["count"] = session.get("count", 0) + 1
        return str(session["count"])

    client = application.test_client()
    expect_equal([client.get("/").data for _ in range(3)], [b"1", b"2", b"3"], "one session")
    expect_equal(application.test_client().get("/").data, b"1", "another one")


def rate_limits():
    storage = limits.storage.storage_from_string(f"memcached://{server()}")
    limit = limits.parse("5/day")
    for strategy in (limits.strategies.FixedWindowRateLimiter,
                     limits.strategies.SlidingWindowCounterRateLimiter):
        limiter, name = strategy(storage), strategy.__name__
        hits = [limiter.hit(limit, name) for _ in range(7)]
        expect_equal(hits, [True] * 5 + [False] * 2, f"hits of {name}")


def dogpile_regions():
    for backend, url in (("pymemcache", server()), ("pylibmc", [server()])):
        region, calls = make_region().configure(
            f"dogpile.cache.{backend}", expiration_time=3600,
            arguments={"url": url, "distributed_lock": True}), []

        def create(calls=calls):
            calls.append(time.time())
            return len(calls)

        key = f"dogpile-{backend}"
        made = region.get_or_create(key, create), region.get_or_create(key, create)
        expect_equal(made, (1, 1), "what is made once")
        region.invalidate()
        expect_equal(region.get_or_create(key, create), 2, "what is made anew")


def aiocache_locks():
    asyncio.run(locked())


async def locked():
    """Counts, and writes under locks."""
    host, port = server().split(":")
    async with aiocache.Cache(aiocache.Cache.MEMCACHED, endpoint=host, port=int(port),
                              namespace="aio") as cache:
        async with RedLock(cache, "only-one", lease=5):
            expect_equal(await cache.increment("count", 2), 2, "the counter")
        await cache.set("text", "old")
        async with OptimisticLock(cache, "text") as lock:
            await lock.cas("new")
        expect_equal(await cache.get("text"), "new", "what was compared and stored")


FUNCTIONS = (django_caches, django_sessions, flask_caches, flask_sessions, rate_limits,
             dogpile_regions, aiocache_locks)
NAMES = [function.__name__.replace("_", "-") for function in FUNCTIONS]


def main():
    """Runs the named cases."""
    # Flask-Session keeps files here unless it is told otherwise.
    os.chdir(tempfile.mkdtemp(dir=os.environ.get("WORK_DIR")))
    configure_django()
    cases = Cases()
    for function in FUNCTIONS:
        cases.case(function)
    return cases.run()


if __name__ == "__main__":
    sys.exit(main())
