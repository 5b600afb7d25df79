/** For durability.test.ts: `commit-one-by-one.ts <data folder> <how many>` waits for each commit before the next. */
import { openStore } from '../../support/open-store.ts';
import { aMessage, aWorker, unique } from '../builders.ts';

const [dataDir = '', count = '0'] = process.argv.slice(2);
const store = await openStore({ kind: 'sqlite', dataDir });
const worker = aWorker(store);
await worker.hold();
process.stderr.write('COMMITS BEGIN\n');
for (let n = Number(count); n > 0; n--)
  await worker.accept(aMessage({ conversation: unique('c'), text: 'hi' }));
process.stderr.write('COMMITS END\n');
await store.close();
