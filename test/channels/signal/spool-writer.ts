/** A process that puts numbers into a spool and says each one that is safe, until it is killed. */
import { Spool } from '../../../channels/signal/spool.ts';

const [folder = ''] = process.argv.slice(2);
const spool = new Spool(folder, 64 * 1024 * 1024);
await spool.look();
for (let at = 1; ; at += 1) {
  await spool.append({ at, raw: `${at} ${'x'.repeat(at % 5000)}` });
  // Said is what has left this process: its reader may be slow, and what waits for it dies with the process.
  await new Promise((resolve) => process.stdout.write(`${at}\n`, resolve));
}
