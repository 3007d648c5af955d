// Drives the memcached port with memjs (frames) and memcached (lines) and prints a line a case.
'use strict';

const { deepStrictEqual: equal, ok, rejects } = require('assert');
const { promisify } = require('util');
const readline = require('readline');
const memjs = require('memjs');
const Memcached = require('memcached');

const SERVER = `127.0.0.1:${process.env.SETTEE_MEMCACHED_PORT}`;
const MIB = 1 << 20;
const VALUE_SIZE_MAX = 20 * MIB;
const CONNECTION_COUNT = 100;

const input = readline.createInterface({ input: process.stdin });
const answers = input[Symbol.asyncIterator]();

async function restartNode() {
  console.log('NODE restart');
  await answers.next();
}

async function gone(get) {
  const deadline = Date.now() + 4000;
  while (await get()) {
    ok(Date.now() < deadline, 'the value expires');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function ofFrames(body) {
  const client = memjs.Client.create(SERVER, { timeout: 20, retries: 0 });
  const text = async (key) => {
    const { value } = await client.get(key);
    return value && value.toString();
  };
  try {
    await body(client, text);
  } finally {
    client.close();
  }
}

async function ofLines(body, options = {}) {
  const client = new Memcached(SERVER, {
    timeout: 20000, maxValue: VALUE_SIZE_MAX, poolSize: 10, retries: 0, failures: 1000, ...options,
  });
  const names = ['get', 'gets', 'getMulti', 'set', 'add', 'replace', 'append', 'prepend', 'cas',
    'incr', 'decr', 'del', 'touch', 'stats', 'settings', 'slabs', 'items', 'version', 'flush'];
  const asked = Object.fromEntries(
    names.map((name) => [name, promisify(client[name]).bind(client)]));
  try {
    await body(asked);
  } finally {
    client.end();
  }
}

/** So many at a time: a client of lines has a connection for each. */
async function inTurns(keys, count, ask) {
  const heard = [];
  for (let start = 0; start < keys.length; start += count) {
    heard.push(...await Promise.all(keys.slice(start, start + count).map((key) => ask(key))));
  }
  return heard;
}

const cases = {
  'memjs-documents': () => ofFrames(async (client, text) => {
    await client.delete('mj');
    equal(await client.replace('mj', 'x', {}), false);
    await rejects(client.append('mj', 'x'), /not stored/);
    equal(await client.add('mj', 'one', {}), true);
    equal(await client.add('mj', 'x', {}), false);
    equal(await client.replace('mj', 'two', {}), true);
    equal(await client.append('mj', '!'), true);
    // The client asks for an append.
    equal(await client.prepend('mj', '?'), true);
    equal(await text('mj'), 'two!?');
    equal(await client.set('mj', '', {}), true);
    equal(await text('mj'), '');
    equal(await client.delete('mj'), true);
    equal(await client.delete('mj'), false);
    equal((await client.get('mj')).value, null);
  }),
  'memjs-counters': () => ofFrames(async (client, text) => {
    await client.delete('mj-count');
    equal((await client.increment('mj-count', 5, { initial: 10 })).value, 10);
    equal((await client.increment('mj-count', 5, { initial: 10 })).value, 15);
    equal((await client.decrement('mj-count', 4, {})).value, 11);
    equal((await client.decrement('mj-count', 40, {})).value, 0);
    await client.set('mj-word', 'two', {});
    await rejects(client.increment('mj-word', 1, {}));
    equal(await text('mj-word'), 'two');
  }),
  'memjs-expiry': () => ofFrames(async (client, text) => {
    await client.set('mj-brief', 'x', { expires: 1 });
    await client.set('mj-touched', 'x', { expires: 1 });
    await client.set('mj-absolute', 'x', { expires: Math.floor(Date.now() / 1000) + 100 });
    equal(await client.touch('mj-touched', 100), true);
    equal(await client.touch('mj-none', 100), false);
    await gone(() => text('mj-brief'));
    equal([await text('mj-touched'), await text('mj-absolute')], ['x', 'x']);
  }),
  'memjs-many-at-once': () => ofFrames(async (client, text) => {
    const keys = Array.from({ length: 5000 }, (_, number) => `mj-many-${number}`);
    const stored = await Promise.all(keys.map((key) => client.set(key, key, {})));
    ok(stored.every((each) => each));
    equal(await Promise.all(keys.map(text)), keys);
  }),
  'memjs-sizes': () => ofFrames(async (client, text) => {
    for (const size of [4095, 64 << 10, MIB, VALUE_SIZE_MAX]) {
      const value = Buffer.alloc(size, 'v');
      equal(await client.set('mj-large', value, {}), true);
      ok((await client.get('mj-large')).value.equals(value), `${size} bytes come back`);
    }
    await rejects(client.set('mj-larger', Buffer.alloc(VALUE_SIZE_MAX + 1), {}));
    equal(await text('mj-larger'), null);
    const long = 'k'.repeat(250);
    equal(await client.set(long, 'long', {}), true);
    equal(await text(long), 'long');
  }),
  'memjs-statistics': () => ofFrames(async (client) => {
    const groups = {};
    for (const group of ['', 'settings', 'items', 'slabs']) {
      await new Promise((resolve, reject) => client.statsWithKey(group, (error, _, stats) => {
        groups[group] = stats;
        return error ? reject(error) : resolve();
      }));
    }
    ok(groups[''].cmd_set > 0 && groups[''].version, 'counters and a version');
  }),
  'memjs-flush': () => ofFrames(async (client, text) => {
    await client.set('mj-flushed', 'x', {});
    await client.flush();
    equal(await text('mj-flushed'), null);
  }),
  'memjs-restart': () => ofFrames(async (client, text) => {
    await client.set('mj-kept', 'x', {});
    await restartNode();
    // The connection from before the restart fails once.
    await text('mj-kept').catch(() => {});
    equal(await text('mj-kept'), 'x');
  }),
  'npm-memcached-documents': () => ofLines(async (client) => {
    await client.del('nm');
    await rejects(client.replace('nm', 'x', 0));
    await rejects(client.append('nm', 'x'));
    equal(await client.add('nm', 'one', 0), true);
    await rejects(client.add('nm', 'x', 0));
    equal(await client.replace('nm', 'two', 0), true);
    equal(await client.append('nm', '!'), true);
    equal(await client.prepend('nm', '?'), true);
    equal(await client.get('nm'), '?two!');
    for (const value of [17, 'text', '', { a: [1] }, Buffer.from('\r\nEND\r\n')]) {
      equal(await client.set('nm', value, 0), true);
      equal(await client.get('nm'), value);
    }
    equal(await client.del('nm'), true);
    equal(await client.del('nm'), false);
    equal(await client.get('nm'), undefined);
  }),
  'npm-memcached-cas': () => ofLines(async (client) => {
    await client.set('nm-cas', 'one', 0);
    const { cas, 'nm-cas': value } = await client.gets('nm-cas');
    equal(value, 'one');
    equal(await client.cas('nm-cas', 'two', cas, 0), true);
    equal(await client.cas('nm-cas', 'three', cas, 0), false);
    equal(await client.get('nm-cas'), 'two');
  }),
  'npm-memcached-counters': () => ofLines(async (client) => {
    await client.del('nm-count');
    equal(await client.incr('nm-count', 1), false);
    await client.set('nm-count', '18446744073709551615', 0);
    equal(await client.incr('nm-count', 6), 5);
    equal(await client.decr('nm-count', 2), 3);
    equal(await client.decr('nm-count', 9), 0);
    await client.set('nm-word', 'two', 0);
    await rejects(client.incr('nm-word', 1), /non-numeric/);
  }),
  'npm-memcached-expiry': () => ofLines(async (client) => {
    await client.set('nm-brief', 'x', 1);
    await client.set('nm-touched', 'x', 1);
    await client.set('nm-absolute', 'x', Math.floor(Date.now() / 1000) + 100);
    await client.set('nm-over', 'x', -1);
    equal(await client.get('nm-over'), undefined);
    equal(await client.touch('nm-touched', 100), true);
    equal(await client.touch('nm-none', 100), false);
    await gone(() => client.get('nm-brief'));
    equal(await client.getMulti(['nm-touched', 'nm-absolute', 'nm-brief']),
      { 'nm-touched': 'x', 'nm-absolute': 'x' });
  }),
  'npm-memcached-many-keys': () => ofLines(async (client) => {
    const keys = Array.from({ length: 5000 }, (_, number) => `nm-many-${number}`);
    await inTurns(keys, 10, (key) => client.set(key, key, 0));
    equal(await client.getMulti([...keys, 'nm-none']),
      Object.fromEntries(keys.map((key) => [key, key])));
  }),
  'npm-memcached-sizes': () => ofLines(async (client) => {
    for (const size of [4095, 64 << 10, MIB, VALUE_SIZE_MAX]) {
      const value = 'v'.repeat(size);
      equal(await client.set('nm-large', value, 0), true);
      ok(await client.get('nm-large') === value, `${size} bytes come back`);
    }
    await client.set('k'.repeat(250), 'long', 0);
    equal(await client.get('k'.repeat(250)), 'long');
  }),
  'npm-memcached-statistics': () => ofLines(async (client) => {
    const [stats] = await client.stats();
    ok(stats.cmd_set > 0 && stats.version, 'counters and a version');
    const [{ version }] = await client.version();
    ok(version, 'a version');
    for (const group of ['settings', 'items', 'slabs']) {
      ok(await client[group](), `the group ${group}`);
    }
  }),
  'npm-memcached-many-connections': () => ofLines(async (client) => {
    const keys = Array.from({ length: 5000 }, (_, number) => `nm-wide-${number}`);
    await inTurns(keys, CONNECTION_COUNT, (key) => client.set(key, key, 0));
    equal(await inTurns(keys, CONNECTION_COUNT, client.get), keys);
  }, { poolSize: CONNECTION_COUNT }),
  'npm-memcached-flush': () => ofLines(async (client) => {
    await client.set('nm-flushed', 'x', 0);
    await client.flush();
    equal(await client.get('nm-flushed'), undefined);
  }),
  'npm-memcached-restart': () => ofLines(async (client) => {
    await client.set('nm-kept', 'x', 0);
    await restartNode();
    // The connection from before the restart fails once.
    await client.get('nm-kept').catch(() => {});
    equal(await client.get('nm-kept'), 'x');
  }, { poolSize: 1 }),
};

async function main() {
  const chosen = process.argv.slice(2);
  for (const [name, run] of Object.entries(cases)) {
    if (chosen.length > 0 && !chosen.includes(name)) {
      continue;
    }
    try {
      await run();
      console.log(`CASE ${name} ok`);
    } catch (error) {
      process.exitCode = 1;
      console.log(`CASE ${name} FAIL ${String(error).split(/\s+/).join(' ').slice(0, 400)}`);
    }
  }
  input.close();
  process.stdin.destroy();
}

main();
