// node-redlock with ioredis on one server: for each line with a number so many cycles of lock and unlock, whose microseconds are told
// in a line.
const Redis = require('ioredis');
const Redlock = require('redlock');
const { version } = require('redlock/package.json');

const redlock = new Redlock([new Redis({ host: '127.0.0.1', port: Number(process.argv[2]) })]);
const resources = process.argv.slice(3);

async function cycles(count) {
  const spans = [];
  for (let cycle = 0; cycle < count; cycle += 1) {
    const begun = process.hrtime.bigint();
    const lock = await redlock.lock(resources, 30000);
    await lock.unlock();
    spans.push((process.hrtime.bigint() - begun) / 1000n);
  }
  console.log(spans.join(' '));
}

console.log('ready', version);
require('readline').createInterface({ input: process.stdin }).on('line', (line) => cycles(Number(line)));
