// Another process on a data folder: `node server-owner.ts <folder>` prints its server's pid and waits to be killed.
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Log } from '#contracts/log.ts';
import { startPrivateServer } from '../../src/redis/private-server.ts';

const ignore = () => undefined;
const silent: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => silent };
const server = await startPrivateServer({ dataDir: process.argv[2] ?? '', log: silent, clock: systemClock });
console.log(server.pid());
setInterval(ignore, 1000);
