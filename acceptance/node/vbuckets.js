// Where a key belongs.
"use strict";

const zlib = require("node:zlib");

/** How many the cluster has; the active copies of the even ones are on the first node. */
const VBUCKETS = Number(process.env.SETTEE_VBUCKETS);

/** The vBucket of a key: bits of its CRC-32. */
function vbucketOf(key) {
  return ((crc32(Buffer.from(key)) >>> 16) & 0x7fff) % VBUCKETS;
}

/** The CRC-32 that ends every gzip file, before the four bytes of its length. */
function crc32(bytes) {
  const file = zlib.gzipSync(bytes);
  return file.readUInt32LE(file.length - 8);
}

module.exports = { vbucketOf };
