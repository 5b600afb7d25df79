/** A process that puts numbers into a spool and reports each one that is safe, until it is killed. */
import { Spool } from '../../../channels/signal/spool.ts';

const [folder = ''] = process.argv.slice(2);
const spool = new Spool(folder, 64 * 1024 * 1024);
await spool.look();
for (let at = 1; ; at += 1) {
  await spool.append({ at, raw: `${at} ${'x'.repeat(at % 5000)}` });
  // Waits until the line has left this process: the reader may be slow, and buffered lines would die with the process.
  await new Promise((resolve) => process.stdout.write(`${at}\n`, resolve));
}
