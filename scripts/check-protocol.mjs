// Checks the models of the lane protocol (proof/lane-protocol/lane.pml, child.pml, task.pml) with spin: that they hold,
// and that each broken variant is refuted for the expected reason. Prints one line per check; the exit code is
// 1 when a proof fails, a broken variant is not refuted, or a program is missing.
//   --small          the sizes that the tests run, a few seconds each
//   --share <i>/<n>  every nth of them, starting at the ith
//   --only <text>    only checks whose line contains the text
//   --model <file>   another model instead of all
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { findOnPath } from './bootstrap.mjs';

const modelOf = (name) => fileURLToPath(new URL(`../proof/lane-protocol/${name}.pml`, import.meta.url));

/** With `settles`, every endless execution is checked too; without it, only every state. */
const proofs = [
  { size: 'small', title: '2 messages', defines: ['MESSAGES=2'] },
  {
    size: 'small',
    title: 'everything settles, 2 messages, no tool',
    defines: ['MESSAGES=2', 'WITHOUT_CALL'],
    settles: true,
  },
  {
    size: 'small',
    title: 'without faults, wakes alone are sufficient, 3 messages',
    defines: ['MESSAGES=3', 'FAULTLESS', 'WITHOUT_SWEEP'],
    settles: true,
  },
  {
    size: 'small',
    title: 'a waiting call is never answered, 2 messages',
    defines: ['MESSAGES=2', 'NOBODY_ANSWERS'],
  },
  {
    size: 'small',
    title: 'a call that a person has to approve, 2 messages',
    defines: ['MESSAGES=2', 'ASKS'],
  },
  {
    title: 'everything settles, a call to approve, 2 messages',
    defines: ['MESSAGES=2', 'ASKS'],
    settles: true,
  },
  { title: '3 messages', defines: ['MESSAGES=3'] },
  { title: '3 messages, both slots in one process', defines: ['MESSAGES=3', 'ONE_PROCESS'] },
  { title: '2 messages, 3 slots', defines: ['MESSAGES=2', 'SLOTS=3'] },
  { title: '4 messages, no tool', defines: ['MESSAGES=4', 'WITHOUT_CALL'] },
  { title: 'everything settles, 2 messages', defines: ['MESSAGES=2'], settles: true },
  {
    size: 'full',
    title: 'everything settles, 3 messages, no tool',
    defines: ['MESSAGES=3', 'WITHOUT_CALL'],
    settles: true,
  },
  {
    size: 'full',
    title: 'without faults, wakes alone are sufficient, 4 messages, both slots in one process',
    defines: ['MESSAGES=4', 'FAULTLESS', 'WITHOUT_SWEEP', 'ONE_PROCESS'],
    settles: true,
  },
];

/** Meanings of the model's assertions, each recognized by a piece of its text. */
const harms = [
  ['early', 'a subtask before its parents'],
  ['again', 'a try that was dispatched twice'],
  ['afterEnd', 'a reply that came too late'],
  ['turns', 'two turns for the answer'],
  ['taskIs', 'something is stuck'],
  ['answers', 'two answers'],
  ['allowed', 'a call that nobody approved'],
  ['refused', 'a call that was refused'],
  ['question', 'a question that outlives its run'],
  ['bereft', 'an orphan'],
  ['heard', 'a parent that was not notified once'],
  ['state[kid[', 'a call that spawned twice'],
  ['(items[1]>0)))', 'work for a child that has ended'],
  ['stopping', 'a child that a stop has not reached'],
  ['<=', 'a tree above its limit'],
  ['accepted==', 'something is stuck'],
  ['owner', 'a write out of turn'],
  ['!(said', 'answered twice'],
  ['said', 'an outcome that is not true'],
  ['gone', 'taken twice'],
  ['>last', 'taken out of order'],
  ['acted', 'a tool call that ran twice'],
  ['cancel', 'answered after it was stopped'],
  ['violated 0', 'given up without a fault'],
  ['acceptance cycle', 'an endless run that does not settle'],
];

/** Without faults and without a sweep, only the wakes are left. */
const alone = ['FAULTLESS', 'WITHOUT_SWEEP'];

const broken = [
  {
    title: 'a write does not check its epoch',
    defines: ['WITHOUT_EPOCH'],
    refutedBy: 'a write out of turn',
  },
  {
    size: 'small',
    title: 'the same, judged by what people see',
    defines: ['WITHOUT_EPOCH', 'JUDGE_BY_HARM'],
    refutedBy: 'answered twice',
  },
  {
    title: 'a claim does not raise the epoch',
    defines: ['EPOCH_KEPT', 'JUDGE_BY_HARM'],
    refutedBy: 'answered twice',
  },
  {
    title: 'a claim ignores the lease: two leases at the same time',
    defines: ['LEASE_IGNORED', 'TRIES=1', ...alone],
    refutedBy: 'given up without a fault',
  },
  {
    size: 'small',
    title: 'a claim reads without the lock on the lane',
    defines: ['CLAIM_UNLOCKED'],
    refutedBy: 'taken twice',
  },
  {
    size: 'small',
    title: 'take and transcript are two transactions',
    defines: ['TAKE_APART'],
    refutedBy: 'an outcome that is not true',
  },
  {
    size: 'small',
    title: 'checking for messages and closing are two transactions',
    defines: ['CLOSE_IN_TWO', ...alone],
    refutedBy: 'something is stuck',
  },
  {
    title: 'an aborted run closes without checking for messages',
    defines: ['DRAIN_BY_END', ...alone],
    refutedBy: 'something is stuck',
  },
  {
    size: 'small',
    title: 'wakes may be lost and there is no sweep',
    defines: ['WITHOUT_SWEEP'],
    refutedBy: 'something is stuck',
  },
  { title: 'a lease never ends', defines: ['LEASE_FOR_EVER'], refutedBy: 'something is stuck' },
  {
    title: 'an answer does not check the cancel flag',
    defines: ['CANCEL_UNREAD'],
    refutedBy: 'answered after it was stopped',
  },
  {
    size: 'small',
    title: 'recovery repeats a call that had started',
    defines: ['CALL_REPEATED'],
    refutedBy: 'a tool call that ran twice',
  },
  {
    title: 'a steer overtakes a message that is not due',
    defines: ['OVERTAKES', 'MESSAGES=3'],
    refutedBy: 'taken out of order',
  },
  { title: 'the ledger has no unique key', defines: ['WITHOUT_LEDGER'], refutedBy: 'taken twice' },
  {
    title: 'a requeued steer stays in the transcript',
    defines: ['KEPT_IN_TRANSCRIPT'],
    refutedBy: 'taken twice',
  },
  {
    size: 'small',
    title: 'parking does not check whether its call was settled',
    defines: ['PARK_UNSEEN', 'PARKED_FOR_EVER'],
    refutedBy: 'something is stuck',
  },
  {
    title: 'cancelling does not wake a parked run',
    defines: ['PARKED_STAYS', 'PARKED_FOR_EVER'],
    refutedBy: 'something is stuck',
  },
  {
    size: 'small',
    title: 'a wait never expires, and no answer comes',
    defines: ['NOBODY_ANSWERS', 'PARKED_FOR_EVER'],
    refutedBy: 'something is stuck',
  },
  {
    size: 'small',
    title: 'a resumed run makes a call that was asked about',
    defines: ['ASKS', 'ASKED_RUNS'],
    refutedBy: 'a call that nobody approved',
  },
  {
    size: 'small',
    title: 'a question that expires counts as approved',
    defines: ['ASKS', 'EXPIRY_APPROVES'],
    refutedBy: 'a call that nobody approved',
  },
  {
    title: 'a press decides whether or not the question is open',
    defines: ['ASKS', 'PRESS_BLIND'],
    refutedBy: 'a call that was refused',
  },
  {
    title: 'a stop leaves the question open',
    defines: ['ASKS', 'QUESTION_LEFT'],
    refutedBy: 'a question that outlives its run',
  },
];

/** Checks of child.pml, which takes each lane's own protocol for granted. `refutedBy` as in `broken`. */
const child = [
  { size: 'small', title: 'a child', defines: ['CHILDREN=1'], settles: true },
  {
    size: 'small',
    title: "a child's child, one slot for all",
    defines: ['CHILDREN=2', 'SLOTS=1'],
    settles: true,
  },
  {
    size: 'small',
    title: 'two children, one slot for all',
    defines: ['CHILDREN=2', 'SIBLINGS', 'SLOTS=1'],
    settles: true,
  },
  { title: "a child's child", defines: ['CHILDREN=2'] },
  {
    size: 'small',
    title: 'a child ends and its parent is notified in two transactions',
    defines: ['FINISH_APART'],
    refutedBy: 'work for a child that has ended',
  },
  {
    size: 'small',
    title: "a child ends without the lock on its parent's lane",
    defines: ['PARENT_UNLOCKED'],
    refutedBy: 'something is stuck',
  },
  {
    size: 'small',
    title: 'a stop does not lock the lanes below',
    defines: ['STOP_UNLOCKED'],
    refutedBy: 'a child that a stop has not reached',
  },
  {
    title: 'a run that fails leaves its children alone',
    defines: ['DEATH_UNHEARD'],
    refutedBy: 'an orphan',
  },
  {
    title: 'a child ends without checking for its own children',
    defines: ['CHILDREN_FORGOTTEN'],
    refutedBy: 'an orphan',
  },
  {
    title: 'a child ends without checking what waits in its lane',
    defines: ['FINISH_BLIND'],
    refutedBy: 'work for a child that has ended',
  },
  {
    title: 'a repeated call spawns again',
    defines: ['SPAWN_ANEW'],
    refutedBy: 'a call that spawned twice',
  },
  {
    title: 'children are counted in a separate transaction',
    defines: ['COUNT_UNLOCKED', 'CHILDREN=3', 'NODES=2'],
    refutedBy: 'a tree above its limit',
  },
  {
    size: 'small',
    title: 'a parent that waits for its child keeps its slot',
    defines: ['WAIT_HOLDS_SLOT', 'SLOTS=1'],
    refutedBy: 'something is stuck',
  },
  {
    title: 'a parent parks whether or not its child has ended',
    defines: ['PARK_UNSEEN'],
    refutedBy: 'something is stuck',
  },
  {
    title: 'a hanging child is asked to stop, but never fenced',
    defines: ['WITHOUT_FENCE'],
    refutedBy: 'something is stuck',
  },
].map((check) => ({ ...check, model: 'child', title: `children: ${check.title}` }));

/** Checks of task.pml: a task of three subtasks whose peers' ends race with a stop and with kills. */
const task = [
  { size: 'small', title: 'two subtasks and one behind both', defines: [], settles: true },
  {
    size: 'small',
    title: 'a subtask is marked in one transaction and its peer made in another',
    defines: ['DISPATCH_APART'],
    refutedBy: 'something is stuck',
  },
  {
    size: 'small',
    title: "a reply is recorded without the lock on the coordinator's lane",
    defines: ['REPLY_UNLOCKED'],
    refutedBy: 'something is stuck',
  },
  {
    title: 'a late reply counts',
    defines: ['LATE_COUNTS'],
    refutedBy: 'a reply that came too late',
  },
  {
    title: 'one parent is enough',
    defines: ['ONE_PARENT'],
    refutedBy: 'a subtask before its parents',
  },
  {
    size: 'small',
    title: 'a stop misses what has not begun',
    defines: ['STOP_MISSES'],
    refutedBy: 'something is stuck',
  },
  {
    title: 'what a step leaves is never settled',
    defines: ['WITHOUT_SETTLING'],
    refutedBy: 'something is stuck',
  },
].map((check) => ({ ...check, model: 'task', title: `tasks: ${check.title}` }));

function chooseChecks({ isSmall, only, share }) {
  const [first = 0, step = 1] = share.split('/').map(Number);
  const isBroken = ({ refutedBy }) => refutedBy !== undefined;
  const all = [...proofs, ...child, ...task, ...broken].map((check) => ({
    ...check,
    line: `${isBroken(check) ? 'broken' : 'holds'}: ${check.title}`,
  }));
  // Proofs first.
  return all
    .toSorted((one, other) => isBroken(one) - isBroken(other))
    .filter(({ line, size }) => (size === 'small' || !isSmall) && line.includes(only))
    .filter((_, index) => index % step === first);
}

/** Runs a program to its end; resolves with its exit code and its output. */
function run(program, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, text }));
  });
}

async function mustRun(program, args, cwd) {
  const { code, text } = await run(program, args, cwd);
  if (code !== 0) throw new Error(`"${[program, ...args].join(' ')}" failed:\n${text}`);
}

/** Returns the commands of one check; the README.md next to the model shows them written out. */
export function commandsOf({ defines, settles = false, refutedBy, model = 'lane' }, file) {
  const isSized = model !== 'lane' || defines.some((define) => define.startsWith('MESSAGES='));
  const sized = isSized ? defines : [...defines, 'MESSAGES=2'];
  // Nearly every step touches the lane, so partial order reduction finds nothing to leave out.
  const kind = settles ? [] : ['-DSAFETY', '-DNOCLAIM'];
  // A broken variant is refuted within thousands of states, so most of its time goes into compiling.
  const effort = refutedBy === undefined ? '-O1' : '-O0';
  return [
    ['spin', '-a', ...sized.map((define) => `-D${define}`), file],
    ['gcc', effort, '-w', '-DNOREDUCE', '-DMEMLIM=8000', ...kind, '-o', 'pan', 'pan.c'],
    ['./pan', '-m1000000', ...(refutedBy === undefined ? [] : ['-w18']), ...(settles ? ['-a'] : [])],
  ];
}

async function applyDecision(check, file) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-protocol-'));
  try {
    const began = performance.now();
    const [spin, gcc, pan] = commandsOf(check, file);
    await mustRun(spin[0], spin.slice(1), folder);
    await mustRun(gcc[0], gcc.slice(1), folder);
    const { text } = await run(join(folder, 'pan'), pan.slice(1), folder);
    const result = readResult(text);
    const isRight = isAsExpected(check, result);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const trail = isRight || !result.violation ? '' : await explain(check, { file, folder });
    return { isRight, line: describe(check, { ...result, isRight, seconds }) + trail };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readResult(text) {
  const states = Number(/(\S+) states, stored/.exec(text)?.[1] ?? Number.NaN);
  const isWhole =
    /errors: 0/.test(text) && !/Search not completed|max search depth|out of memory/i.test(text);
  const error = /^pan:\d+: (.*?)(?: \(at depth \d+\))?$/m.exec(text)?.[1];
  const violation = error && (harms.find(([piece]) => error.includes(piece))?.[1] ?? error);
  return { states, isWhole, violation, text };
}

function isAsExpected({ refutedBy }, { isWhole, violation }) {
  return refutedBy === undefined ? isWhole : violation === refutedBy;
}

function describe({ line, refutedBy }, { states, violation, isRight, seconds, text }) {
  const mark = isRight ? '✓' : '✗';
  const count = Number.isNaN(states) ? 'no' : states.toLocaleString('en-US');
  const verdict = () => {
    if (refutedBy === undefined)
      return isRight ? 'no error' : (violation ?? `not finished\n${text.slice(-1500)}`);
    if (isRight) return `refuted by ${violation}`;
    return violation === undefined ? 'NOT refuted' : `refuted by something else: ${violation}`;
  };
  return `${mark} ${line}: ${count} states, ${verdict()} (${seconds} s)`;
}

/** Returns the steps that lead to the error, as replayed by spin. */
async function explain(check, { file, folder }) {
  const [spin] = commandsOf(check, file);
  const defines = spin.filter((word) => word.startsWith('-D'));
  const { text } = await run(
    'spin',
    ['-t', '-p', '-k', `${file.split('/').at(-1)}.trail`, ...defines, file],
    folder,
  );
  const steps = text
    .split('\n')
    .filter((line) => /proc /.test(line) && !/IF\]|DO\]|goto|sub-sequence/.test(line));
  return `\n${steps.slice(-80).join('\n')}`;
}

function findMissing() {
  const missing = ['spin', 'gcc'].filter((name) => findOnPath(name) === undefined);
  if (missing.length === 0) return undefined;
  return `Missing: ${missing.join(', ')}. Install with: apt-get install -y spin gcc`;
}

async function main() {
  const { values } = parseArgs({
    options: {
      small: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      share: { type: 'string', default: '0/1' },
      model: { type: 'string' },
    },
  });
  const missing = findMissing();
  if (missing !== undefined) {
    console.error(missing);
    return 1;
  }
  const checks = chooseChecks({ ...values, isSmall: values.small });
  const left = [...checks];
  let wrong = 0;
  const work = async () => {
    for (let check = left.shift(); check !== undefined; check = left.shift()) {
      const { isRight, line } = await applyDecision(
        check,
        resolve(values.model ?? modelOf(check.model ?? 'lane')),
      );
      console.log(line);
      if (!isRight) wrong += 1;
    }
  };
  // The large ones need memory, so no more run in parallel than the smallest machine has cores.
  await Promise.all([work(), work()]);
  console.log(`${checks.length} checks, ${wrong} wrong`);
  return wrong === 0 && checks.length > 0 ? 0 : 1;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = await main();
