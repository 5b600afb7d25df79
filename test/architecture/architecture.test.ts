import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { identifiersArePlain, titlesArePlain, wordsArePlain } from './plain-words.ts';
import * as rules from './rules.ts';
import { onlySyntax, readSourceTree, type SourceTree } from './source-tree.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** Creates a small project that breaks every rule once, to check that each rule can fail. */
function brokenTree(): SourceTree {
  const root = mkdtempSync(join(tmpdir(), 'parley-architecture-'));
  folders.push(root);
  const files: Record<string, string> = {
    'tsconfig.json': '{ "compilerOptions": { "allowImportingTsExtensions": true, "noEmit": true } }',
    'src/contracts/noun.ts':
      "import type { Up } from '../config/up.ts';\nexport type Noun = Up;\n/** Says so. */\nexport type Told = Up;\nexport type Alone = Up;\n",
    'src/config/up.ts':
      "import type { Noun, Told } from '../contracts/noun.ts';\nexport type Up = Noun | Told;\n",
    'src/store/row.ts': "import '../server/page.ts';\nimport '../redis/down.ts';\nimport './gone.ts';\n",
    'src/store/rows/low.ts': "import '../intake/high.ts';\nimport '../../replies/shape.ts';\n",
    'src/store/intake/high.ts': "import '../rows/low.ts';\nimport '../helpers/thing.ts';\n",
    'src/store/helpers/thing.ts': "import '../rows/low.ts';\n",
    'src/store/items/second.ts': [
      "db.updateTable('inbox').set({ state: 'ended' }).where('id', '=', id).execute();",
      "prepared((db, of) => db.updateTable('inbox').set((eb) => ({ seq: 1, outcome: of.outcome })));",
      "const rows = db.updateTable('inbox').where('id', '=', id);",
      "db.updateTable('inbox').where('id', '=', id).set({ seq: 1, ...rest });",
      'sql`update inbox set state = 1`;',
      'db.updateTable(table).set({ seq: 1 });',
      "db.updateTable('inbox').set({ seq: 1 }).where((eb) => eb('state', '=', 'held'));",
      "insertNewRow(tx, 'runs', { id });",
      "db.insertInto('toolCalls').values({ callId });",
      "db.deleteFrom('outbox').where('key', '=', key);",
      'sql`delete from lanes`;',
      'insertRow(tx, table, row);',
      "db.updateTable('inbox as i').set({ 'i.outcome': 1 });",
      "ensureRow(tx, 'budgets', { key });",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a file
      'sql`update ${table} set state = 1`;',
      'sql`insert or replace into approvals`;',
      "changeRow(tx, 'outbox', key, { dueAt: 1, problem });",
      "changeRow(tx, 'runs', id, { ...end });",
    ].join('\n'),
    'src/store/base/tables.ts':
      'type Tables = {\n  late: LateTable;\n};\nexport type LateTable = { id: string; givenBy: string; sendHolder: string };\n',
    'ARCHITECTURE.md': 'word '.repeat(2701),
    'src/replies/shape.ts': "import { type Stats, statSync } from 'node:fs';\n",
    'src/redis/down.ts': "export const late = () => import('../store/row.ts');\n",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a file
    'src/server/page.ts': "export const names = ['teleport', `teleport:${1}`, 'teleporter'];\n",
    'src/helpers/thing.ts': "import '../redis/down.ts';\nimport '../../channels/teleport/index.ts';\n",
    'src/cli/odd.ts':
      '/** What is odd. Whoever sees it stands\n * in awe. */\n// Whatever stands out, as in former.ts and row.ts.\n',
    'src/agent/odd.ts':
      'export let state = 1;\nexport default state;\nexport enum Kind { A }\nexport const size = (x: any) => x!.y + process.env.HOME;\n// @ts-ignore\n',
    'src/commands/list.ts': "import './warp.ts';\n",
    'src/commands/warp.ts': "export const say = 'Send /warp.';\n",
    'src/inbound/named.ts': [
      "const say = 'Send /warp again.';",
      'const isWarp = (text: string) => /^\\/warp\\b/.test(text);',
      "const isIt = (command: { name: string }) => command.name === 'warp';",
      "switch (commandName) { case 'warp': break; }",
      "const step = commandSteps.get('warp');",
      "const drive = ['warp', '/api/warp', '/warp/core', './warp.ts', speed === 'warp'];",
    ].join('\n'),
    'src/agent/long.ts': `export function long() {\n${'  void 0;\n'.repeat(60)}}\n`,
    'src/agent/huge.ts': `${'export {};\n'.repeat(501)}`,
    'channels/teleport/index.ts': "import '../../src/store/row.ts';\nimport '../other/index.ts';\n",
    'channels/other/index.ts':
      "import 'node:fs';\nimport '#contracts/noun.ts';\nimport '#channel-kit/retry.ts';\n",
    'plugins/spade/index.ts': "import '#channel-kit/retry.ts';\n",
    'src/agent/spelled.ts':
      'export const mostLines = 1;\nexport const summarisedAt = 1;\nconst letGo = (colour: string) => colour;\nexport const unauthorised = letGo;\n',
    'test/mocked.test.ts': "vi.mock('x');\n",
    'test/halves.test.ts':
      "it('of what a run works on', f);\nit.each(a)('are kept %s', f);\nit('ends, and goes on', f);\nit('keeps %s', f);\n",
    'test/hasty.test.ts': [
      'const since = performance.now();',
      'expect(performance.now() - since).toBeLessThan(5);',
      'const tookMs = Date.now() - since;',
      'expect({ isQuick: tookMs < 9 }).toEqual({ isQuick: true });',
      'const times = [];',
      'times.push(tookMs);',
      'expect(Math.min(...times)).toBeLessThan(9);',
      'function lasts() { const before = Date.now(); return new Promise((end) => end(Date.now() - before)); }',
      'expect(await lasts()).toBeLessThan(9);',
      'const { user } = process.threadCpuUsage(before);',
      'expect(user).toBeLessThan(9);',
      'expect(row.since).toBeGreaterThan(since - 1000);',
      'await server.waitFor(() => calls.length === 1, 5_000);',
      "await until(isSo, { what: 'it', deadlineMs: 20_000 });",
      'await expect(until(isSo, { deadlineMs: 20 })).rejects.toThrow();',
      'fc.assert(property, { interruptAfterTimeLimit: 500 });',
    ].join('\n'),
    'README.md':
      'All gives way. See `src/store/row.ts`, `src/nowhere.ts`, [there](docs/gone.md) and `npm test`.\n',
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return readSourceTree(root, 'tsconfig.json');
}

const real = readSourceTree(process.cwd(), onlySyntax);
const broken = brokenTree();

const cases: readonly (readonly [string, rules.Rule, readonly RegExp[]])[] = [
  [
    'imports only go down, in the order of the layers and of the folders inside the store',
    rules.importsGoDown,
    [
      /contracts\/noun\.ts imports src\/config\/up\.ts, which stands above/,
      /config\/up\.ts imports \.\.\/contracts\/noun\.ts; write #contracts/,
      /store\/row\.ts imports src\/server\/page\.ts, which stands above/,
      /store\/row\.ts imports \.\/gone\.ts, which is not there/,
      /redis\/down\.ts imports src\/store\/row\.ts, which stands above/,
      /src\/helpers\/thing\.ts lies in no known layer/,
      /store\/rows\/low\.ts imports src\/store\/intake\/high\.ts, which stands above/,
      /store\/rows\/low\.ts imports src\/replies\/shape\.ts, which stands above/,
      /store\/intake\/high\.ts imports src\/store\/helpers\/thing\.ts, which stands above/,
      /store\/helpers\/thing\.ts lies in no known layer/,
      /helpers\/thing\.ts imports channels\/teleport\/index\.ts, which lies outside/,
    ],
  ],
  [
    'no call on a disk holds up the process unless that disk answers',
    rules.diskCallsDontBlock,
    [/shape\.ts imports statSync; use/],
  ],
  [
    'what becomes of a row is written in one file',
    rules.statesHaveOneWriter,
    [
      /second\.ts:1 sets inbox\.state; only/,
      /second\.ts:2 sets inbox\.outcome; only/,
      /second\.ts:3 doesn't show which columns of inbox/,
      /second\.ts:4 doesn't show which columns of inbox/,
      /second\.ts:5 doesn't show which columns of inbox/,
      /second\.ts:6 changes rows of a table that it doesn't name/,
      /second\.ts:8 inserts rows of runs; only/,
      /second\.ts:9 inserts rows of toolCalls; only/,
      /second\.ts:10 deletes rows of outbox; only/,
      /second\.ts:11 deletes rows of lanes; only .*rows\/lane/,
      /second\.ts:12 changes rows of a table that it doesn't name/,
      /second\.ts:13 doesn't show which columns of inbox/,
      /second\.ts:14 inserts rows of budgets; only/,
      /second\.ts:15 changes rows of a table that it doesn't name/,
      /second\.ts:16 inserts rows of approvals; only/,
      /second\.ts:17 sets outbox\.problem; only/,
      /second\.ts:18 doesn't show which columns of runs/,
    ],
  ],
  [
    'every table with a state, a holder or an end is among them',
    rules.statesAreListed,
    [/late\.sendHolder has no writer/],
  ],
  [
    'no folder and its neighbour need each other',
    rules.foldersAreRanked,
    [/src\/store: .*intake → rows|src\/store: .*rows → intake/, /src: contracts → config → contracts/],
  ],
  [
    'README and architecture can be read at one go',
    rules.documentsAreShort,
    [/ARCHITECTURE\.md has 2701 words/],
  ],
  [
    'no import goes in a circle, types included',
    rules.noCycles,
    [
      /noun\.ts → src\/config\/up\.ts → src\/contracts\/noun\.ts/,
      /src\/redis\/down\.ts → src\/store\/row\.ts/,
    ],
  ],
  [
    'channels import the contracts, the channel kit and themselves only, plugins the contracts and themselves',
    rules.channelsAndPluginsStandAlone,
    [
      /teleport\/index\.ts imports src\/store/,
      /teleport\/index\.ts imports channels\/other/,
      /spade\/index\.ts imports src\/channel-kit/,
    ],
  ],
  [
    "no channel's name is written in src",
    rules.channelNamesStayOut,
    [/page\.ts names the channel "teleport"/, /page\.ts names the channel "teleport:"/],
  ],
  [
    "no chat command's name is written outside the commands, their texts and the configuration",
    rules.commandNamesStayHome,
    [1, 2, 3, 4, 5].map((line) => new RegExp(`named\\.ts:${line} names the chat command "warp"`)),
  ],
  [
    'what other folders import has a doc comment',
    rules.sharedExportsAreDocumented,
    [/contracts\/noun\.ts:2 exports Noun to other folders/],
  ],
  [
    'no file is longer than 500 lines, no test longer than 700',
    rules.filesAreShort,
    [/huge\.ts has 501 lines/],
  ],
  ['no function is longer than 60 lines', rules.functionsAreShort, [/long\.ts:1 long has 62 lines/]],
  [
    'every channel folder has the same shape',
    rules.adaptersHaveOneShape,
    [/teleport\/adapter\.ts is missing/, /teleport\/README\.md is missing/],
  ],
  [
    'nothing uses default exports, any, enums, module-level let, ignored errors, module mocks or the environment',
    rules.noOddConstructs,
    [
      /odd\.ts:1: a module-level let/,
      /odd\.ts:2: a default export/,
      /odd\.ts:3: an enum/,
      /odd\.ts:4: any/,
      /odd\.ts:4: a non-null assertion/,
      /odd\.ts:4: process\.env/,
      /odd\.ts:5: @ts-ignore/,
      /mocked\.test\.ts:1: vi\.mock/,
    ],
  ],
  [
    'no test asserts how long something took',
    rules.nothingAssertsTime,
    [2, 4, 7, 9, 11].map((line) => new RegExp(`hasty\\.test\\.ts:${line} asserts how long`)),
  ],
  [
    'no test waits for less than its patience',
    rules.waitsHavePatience,
    [13, 14].map((line) => new RegExp(`hasty\\.test\\.ts:${line} waits for a time of its own`)),
  ],
  [
    'a property with a time budget always runs once',
    rules.budgetsRunOnce,
    [/hasty\.test\.ts gives fc\.assert a time limit/],
  ],
  [
    'comments and documents use plain words',
    wordsArePlain,
    [
      /odd\.ts: “\/\*\* What is odd.*start with a verb/,
      /odd\.ts: “Whoever”/,
      /odd\.ts: “stands in”/,
      /README\.md: “gives way”/,
    ],
  ],
  [
    'the title of a test makes sense alone',
    titlesArePlain,
    [/halves\.test\.ts:1: “of”/, /halves\.test\.ts:2: “are”/, /halves\.test\.ts:3: “goes on”/],
  ],
  [
    'declared names are spelled and built alike',
    identifiersArePlain,
    [
      /spelled\.ts:1: “mostLines”: max/,
      /spelled\.ts:2: “summarisedAt”: -ize/,
      /spelled\.ts:3: “letGo”: say plainly/,
      /spelled\.ts:3: “colour”: US/,
    ],
  ],
  [
    'every path that a document names exists',
    rules.documentedPathsExist,
    [/names src\/nowhere\.ts/, /names docs\/gone\.md/],
  ],
  [
    'every source file that a comment names exists',
    rules.commentedFilesExist,
    [/cli\/odd\.ts names former\.ts/],
  ],
];

describe('the source tree', () => {
  it('reads the whole source tree', () => {
    const paths = real.modules.map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining(['src/contracts/ids.ts', 'test/architecture/rules.ts']));
  });

  it.each(cases)('keeps the rule that %s', (_name, rule) => {
    expect(rule(real)).toEqual([]);
  });
});

describe('a tree that breaks the rules', () => {
  it.each(cases)('catches what breaks the rule that %s', (_name, rule, expected) => {
    const found = rule(broken);
    for (const pattern of expected)
      expect(
        found.some((line) => pattern.test(line)),
        String(pattern),
      ).toBe(true);
    expect(found.join('\n')).not.toMatch(
      /teleporter|named\.ts:6|commands\/warp\.ts|second\.ts:7|names src\/store|intake\/high\.ts imports src\/store\/rows|hasty\.test\.ts:12|halves\.test\.ts:4|spelled\.ts:4: “/,
    );
  });
});
