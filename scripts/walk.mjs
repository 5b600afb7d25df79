// `npm run walk`: starts Parley from source beside a local Telegram and a local model, sends one direct message, and
// prints the files and functions that ran from its arrival to its last row, by stage and thread: those that ran more
// often than while nobody wrote. The number of files is the measure of how far a message has to go.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { countEvents, untilAtRest } from '../test/e2e/conservation.ts';
import { startStage } from '../test/e2e/stage.ts';
import { ada, untilSaid } from '../test/e2e/telegram-chat.ts';
import { until } from '../test/e2e/until.ts';

/** Longer than the pauses of what is repeated each second. */
const idleMs = 2_500;
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-walk-'));
const file = join(folder, 'counts');
const ends = [async () => rmSync(folder, { recursive: true })];
try {
  const env = {
    NODE_OPTIONS: `--import=${join(root, 'scripts/walk-probe.mjs')}`,
    NODE_COMPILE_CACHE: '',
    WALK_FILE: file,
  };
  const gateway = await startStage({ env }, (end) => ends.push(end));
  // The first message loads what the later ones find loaded.
  for (const text of ['Hello', 'Are you there?']) await converse(gateway, text);
  await takeCounts(gateway, 1);
  const began = performance.now();
  await converse(gateway, 'How does a message travel?');
  const counts = await takeCounts(gateway, 2);
  // At least as long as the message took, so that what runs each second has run as often.
  await setTimeout(Math.max(idleMs, 2 * (performance.now() - began)));
  report(counts, callsIn(await takeCounts(gateway, 3)));
} finally {
  for (const end of ends.reverse()) await end();
}

async function converse({ telegram, dataDir }, text) {
  const events = countEvents(dataDir) + 1;
  telegram.people.sends({ from: ada, text });
  await untilSaid(telegram, { chat: ada.id, text: new RegExp(RegExp.escape(text)) });
  await untilAtRest(dataDir, events);
}

async function takeCounts({ parley }, step) {
  process.kill(parley().pid, 'SIGWINCH');
  const counts = () => {
    try {
      return JSON.parse(readFileSync(`${file}.${step}`, 'utf8'));
    } catch {
      return undefined;
    }
  };
  await until(() => counts() !== undefined, { what: 'the counts of each thread' });
  return counts();
}

/** Returns how often each named function of Parley ran, by thread, file and place. */
function callsIn(counts) {
  const calls = new Map();
  for (const [thread, scripts] of Object.entries(counts)) {
    for (const { url, functions } of scripts) {
      const path = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : '';
      if (!/^(?:src|channels|plugins)\//.test(path)) continue;
      for (const { functionName: name, ranges } of functions) {
        const [{ count, startOffset }] = ranges;
        if (name !== '' && count > 0)
          calls.set(`${thread} ${path} ${startOffset}`, { thread, path, name, count });
      }
    }
  }
  return calls;
}

function report(counts, idle) {
  const files = new Map();
  for (const [place, { thread, path, name, count }] of callsIn(counts)) {
    if (count <= (idle.get(place)?.count ?? 0)) continue;
    const entry = files.get(path) ?? { threads: new Set(), names: new Set() };
    entry.threads.add(thread === 'main' ? 'main' : 'writer');
    entry.names.add(name);
    files.set(path, entry);
  }
  const stages = Map.groupBy([...files].sort(), ([path]) => path.split('/').slice(0, 2).join('/'));
  for (const [stage, members] of stages) {
    console.log(`\n${stage}  (${members.length} files)`);
    for (const [path, { threads, names }] of members)
      console.log(`  ${path.slice(stage.length + 1)}  [${[...threads].join(', ')}]  ${[...names].join(' ')}`);
  }
  const lines = [...files.keys()].reduce(
    (sum, path) => sum + readFileSync(join(root, path), 'utf8').split('\n').length - 1,
    0,
  );
  console.log(`\n${files.size} files of ${lines} lines`);
}
