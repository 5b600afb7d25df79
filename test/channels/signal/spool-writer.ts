/** A process that puts numbers into a spool and says each one that is safe, until it is killed. */
import { Spool } from '../../../channels/signal/spool.ts';

const [path = ''] = process.argv.slice(2);
const spool = new Spool(path, 64 * 1024 * 1024);
await spool.ready();
for (let at = 1; ; at += 1) {
  await spool.append({ at, raw: `${at} ${'x'.repeat(at % 5000)}` });
  // Said is what has left this process: its reader may be slow, and what waits for it dies with the process.
  await new Promise((resolve) => process.stdout.write(`${at}\n`, resolve));
}
