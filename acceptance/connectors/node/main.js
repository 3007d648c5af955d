// Documents of Ottoman, and sessions of Express on the memcached port; a line a case.
'use strict';

const { deepStrictEqual: equal, ok, rejects } = require('assert');
const express = require('express');
const session = require('express-session');
const { Ottoman, Schema, DocumentNotFoundError, ValidationError } = require('ottoman');
const MemcachedStore = require('connect-memcached')(session);

const GONE_MS = 6000;
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function withOttoman(options, body) {
  const ottoman = new Ottoman(options);
  await ottoman.connect({
    connectionString: process.env.SETTEE_CONNECT, bucketName: 'default',
    username: process.env.SETTEE_USER, password: process.env.SETTEE_PASSWORD,
    timeouts: { connectTimeout: 30000, bootstrapTimeout: 30000, kvTimeout: 10000 },
  });
  try {
    await body(ottoman);
  } finally {
    await ottoman.close();
  }
}

async function get(port, cookie) {
  const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: cookie ? { cookie } : {} });
  const given = answer.headers.get('set-cookie');
  return { text: await answer.text(), cookie: given && given.split(';')[0] };
}

/** Serves pages that count how often each session has asked. */
async function withSessions(body) {
  const hosts = [`127.0.0.1:${process.env.SETTEE_MEMCACHED_PORT}`];
  const store = new MemcachedStore({ hosts });
  const pages = express();
  pages.use(session({
    secret: 'signs', resave: false, saveUninitialized: true, store, cookie: { maxAge: 2000 },
  }));
  pages.get('/', (request, answer) => {
    request.session.count = (request.session.count || 0) + 1;
    answer.send(String(request.session.count));
  });
  const server = pages.listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    await body(server.address().port);
  } finally {
    server.close();
    store.client.end();
  }
}

const cases = {
  'ottoman-documents': () => withOttoman({ collectionName: '_default' }, async (ottoman) => {
    const Friend = ottoman.model('Friend', new Schema({ name: String }));
    const User = ottoman.model('User', new Schema({
      name: { type: String, required: true }, age: Number, friend: { type: String, ref: 'Friend' },
    }, { timestamps: true }));
    const friend = await Friend.create({ name: 'Fred' });
    const { id } = await User.create({ name: 'Ann', age: 3, friend: friend.id });
    equal((await User.findById(id, { populate: 'friend' })).friend.name, 'Fred');
    await User.updateById(id, { age: 4 });
    equal((await User.findById(id)).age, 4);
    await User.replaceById(id, { name: 'Bob' });
    equal((await User.findById(id)).age, undefined);
    equal((await User.createMany([{ name: 'Cid' }, { name: 'Dan' }])).message.success, 2);
    await rejects(User.create({ age: 3 }), ValidationError);
    await User.removeById(id);
    await rejects(User.findById(id), DocumentNotFoundError);
  }),
  'ottoman-reference-documents': () => withOttoman({ collectionName: '_default' },
    async (ottoman) => {
      const schema = new Schema({ name: String });
      schema.index.findByName = { by: 'name', type: 'refdoc' };
      const User = ottoman.model('Named', schema);
      const { id } = await User.create({ name: 'Eve' });
      equal((await User.findByName('Eve')).id, id);
      await User.replaceById(id, { name: 'Flo' });
      equal((await User.findByName('Flo')).id, id);
      await rejects(User.findByName('Eve'), DocumentNotFoundError);
    }),
  'ottoman-transactions': () => withOttoman({ collectionName: '_default' }, async (ottoman) => {
    const User = ottoman.model('Paid', new Schema({ name: String, age: Number }));
    let id;
    await ottoman.$transactions(async (transactionContext) => {
      id = (await User.create({ name: 'Gus' }, { transactionContext })).id;
      const user = await User.findById(id, { transactionContext });
      user.age = 5;
      await user.save(false, { transactionContext });
    });
    equal((await User.findById(id)).age, 5);
    await rejects(ottoman.$transactions(async (transactionContext) => {
      id = (await User.create({ name: 'Hal' }, { transactionContext })).id;
      throw new Error('the application has changed its mind');
    }));
    await rejects(User.findById(id), DocumentNotFoundError);
  }),
  'ottoman-makes-collections': () => withOttoman({ scopeName: 'shop' }, async (ottoman) => {
    const Place = ottoman.model('Place', new Schema({ name: String }));
    await ottoman.ensureCollections();
    const { id } = await Place.create({ name: 'here' });
    equal((await Place.findById(id)).name, 'here');
  }),
  'express-sessions': () => withSessions(async (port) => {
    const { text, cookie } = await get(port);
    equal(text, '1');
    equal((await get(port, cookie)).text, '2');
    equal((await get(port)).text, '1');
    // Each answer makes the session last anew.
    const deadline = Date.now() + GONE_MS;
    for (let asleep = 2100; (await get(port, cookie)).text !== '1'; asleep += 500) {
      ok(Date.now() < deadline, 'a session that nobody uses ends');
      await sleep(asleep);
    }
  }),
};

async function main() {
  let isGood = true;
  const chosen = process.argv.slice(2);
  for (const [name, body] of Object.entries(cases)) {
    if (chosen.length && !chosen.includes(name)) continue;
    const started = Date.now();
    try {
      await body();
      const seconds = (Date.now() - started) / 1000;
      console.log(`CASE ${name} ok${seconds >= 1 ? ` (${seconds.toFixed(1)} s)` : ''}`);
    } catch (error) {
      isGood = false;
      console.log(`CASE ${name} FAIL ${String(error).split(/\s+/).join(' ').slice(0, 400)}`);
    }
  }
  process.exit(isGood ? 0 : 1);
}

main();
