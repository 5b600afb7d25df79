import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Module, SourceTree } from './source-tree.ts';

/** Examines a tree and returns what breaks the rule, one line each. */
export type Rule = (tree: SourceTree) => readonly string[];

/** The folders of `src/` from the bottom up. An import may only go to an earlier entry, or stay in its folder. */
const order = [
  ['contracts'],
  ['channel-kit', 'texts', 'client'],
  ['config', 'logging', 'http', 'processes', 'redis', 'backup', 'store'],
  ['skills', 'sessions', 'agent', 'media', 'models', 'hooks', 'replies'],
  [
    'queue',
    'commands',
    'inbound',
    'runs',
    'subagents',
    'outbox',
    'tools',
    'mail',
    'plugin-host',
    'channel-host',
  ],
  ['steps.ts', 'store-writer.ts'],
  ['service', 'operations', 'server', 'cli'],
  ['roles', 'gateway.ts', 'startup', 'main.ts', 'testing', 'library'],
].flat();

/** Folders that are always imported by their alias in package.json. */
const aliased = new Set(['contracts', 'channel-kit']);

/**
 * Folders that are also ranked inside, from the bottom up. A name is a sub-folder, or a file next to
 * the sub-folders.
 */
const innerOrders: Readonly<Record<string, readonly string[]>> = {
  store: [
    ['base'],
    ['rows', 'alerts', 'money', 'delivery', 'approvals', 'waits', 'tasks', 'items', 'children', 'lanes'],
    ['delegation'],
    ['processes', 'sign-ins', 'access', 'links', 'intake', 'reads'],
    ['migrations', 'migrate.ts', 'store-report.ts', 'watch-store.ts'],
    ['sqlite', 'postgres', 'readable-store.ts', 'open-store.ts', 'open-configured.ts', 'inspect-store.ts'],
  ].flat(),
};

export const importsGoDown: Rule = (tree) =>
  tree.modules.filter(isIn('src')).flatMap((module) =>
    module.imports.flatMap(({ specifier, target }) => {
      const from = placeOf(module.path);
      if (target === undefined) {
        return specifier.startsWith('.') ? [`${module.path} imports ${specifier}, which is not there`] : [];
      }
      if (!target.startsWith('src/')) {
        return module.path === 'src/main.ts'
          ? []
          : [`${module.path} imports ${target}, which lies outside src`];
      }
      const to = placeOf(target);
      if (from === to) return importsGoDownInside(from, { path: module.path, target });
      if (aliased.has(to) && !specifier.startsWith(`#${to}/`)) {
        return [`${module.path} imports ${specifier}; write #${to}/…`];
      }
      return judgeRank(order, { from, to, path: module.path, target });
    }),
  );

function importsGoDownInside(
  folder: string,
  { path, target }: { readonly path: string; readonly target: string },
): readonly string[] {
  const inner = Object.hasOwn(innerOrders, folder) ? innerOrders[folder] : undefined;
  const [from, to] = [placeOf(path, 2), placeOf(target, 2)];
  return inner === undefined || from === to ? [] : judgeRank(inner, { from, to, path, target });
}

type RankedImport = {
  readonly from: string;
  readonly to: string;
  readonly path: string;
  readonly target: string;
};

function judgeRank(ranks: readonly string[], { from, to, path, target }: RankedImport): readonly string[] {
  const fromRank = ranks.indexOf(from);
  const toRank = ranks.indexOf(to);
  if (fromRank === -1) return [`${path} lies in no known layer`];
  return toRank === -1 || toRank > fromRank ? [`${path} imports ${target}, which stands above it`] : [];
}

function placeOf(path: string, depth = 1): string {
  return path.split('/')[depth] ?? path;
}

type StateColumns = { readonly columns: readonly string[]; readonly writer: string; readonly maker?: string };

/** Columns that hold the state of a row, the one file that changes them, and the file that inserts rows if another. */
const stateColumns: Readonly<Record<string, StateColumns>> = {
  accounts: { columns: ['epoch', 'holder', 'leaseUntil'], writer: 'src/store/processes/accounts.ts' },
  conversations: {
    columns: ['deliveryEpoch', 'deliveryHolder', 'deliveryClaim', 'deliveryUntil'],
    writer: 'src/store/delivery/claim-delivery.ts',
    maker: 'src/store/delivery/part.ts',
  },
  ledger: {
    columns: ['outcome', 'reason', 'inboxId', 'laneKey'],
    writer: 'src/store/rows/item.ts',
    maker: 'src/store/intake/accept-batch.ts',
  },
  sessions: { columns: ['endedAt'], writer: 'src/store/rows/lane.ts' },
  ownerNotices: {
    columns: ['isPending', 'toldAt', 'partKey', 'dismissedAt', 'endedAt'],
    writer: 'src/store/alerts/alert.ts',
  },
  inbox: { columns: ['state', 'outcome', 'outcomeReason'], writer: 'src/store/rows/item.ts' },
  lanes: {
    columns: ['epoch', 'runId', 'holder', 'leaseUntil'],
    writer: 'src/store/rows/lane.ts',
    maker: 'src/store/rows/lane.ts',
  },
  runs: {
    columns: ['state', 'epoch', 'parkedAt', 'cancelReason', 'endReason', 'endedAt'],
    writer: 'src/store/rows/run.ts',
  },
  children: { columns: ['state', 'status', 'told', 'endedAt'], writer: 'src/store/children/child.ts' },
  tasks: { columns: ['state', 'told', 'endedAt'], writer: 'src/store/tasks/task.ts' },
  subtasks: { columns: ['state', 'tries', 'endedAt'], writer: 'src/store/tasks/task.ts' },
  taskMessages: { columns: ['state', 'status'], writer: 'src/store/tasks/task.ts' },
  outbox: {
    columns: ['state', 'attempts', 'sendingAt', 'endedAt', 'problem', 'receipts'],
    writer: 'src/store/delivery/part.ts',
  },
  approvals: {
    columns: ['state', 'decidedBy'],
    writer: 'src/store/approvals/approval.ts',
  },
  callApprovals: {
    columns: ['state', 'decidedBy', 'endedAt'],
    writer: 'src/store/approvals/call-approval.ts',
  },
  grants: { columns: ['revokedBy', 'endedAt'], writer: 'src/store/approvals/grant.ts' },
  toolCalls: { columns: ['state', 'result', 'endedAt'], writer: 'src/store/rows/tool-call.ts' },
  modelCalls: { columns: ['state', 'cost', 'reserved'], writer: 'src/store/money/model-call.ts' },
  sessionUsage: { columns: ['calls', 'cost'], writer: 'src/store/money/model-call.ts' },
  budgets: { columns: ['spent', 'reserved', 'raisedTo'], writer: 'src/store/money/budget.ts' },
};

/** Files that write to whichever table the caller names, or copy a complete database. */
const anyTable = [
  'src/store/base/row-access.ts',
  'src/store/base/row-access.ts',
  'src/store/postgres/import-sqlite.ts',
];

/** A promise kept in one place can be checked there; with two writers, each can break the other's. */
export const statesHaveOneWriter: Rule = (tree) =>
  tree.modules.filter(isIn('src')).flatMap(({ path, tableWrites }) =>
    tableWrites.flatMap(({ kind, line, table, columns }) => {
      if (anyTable.includes(path)) return [];
      if (table === undefined) return [`${path}:${line} changes rows of a table that it doesn't name`];
      const state = Object.hasOwn(stateColumns, table) ? stateColumns[table] : undefined;
      if (state === undefined || path === state.writer) return [];
      if (kind !== 'update') {
        const { maker = state.writer } = state;
        return path === maker ? [] : [`${path}:${line} ${kind}s rows of ${table}; only ${maker} may`];
      }
      const written = columns?.filter((column) => state.columns.includes(column));
      if (written === undefined)
        return [`${path}:${line} doesn't show which columns of ${table} it sets; name them in one chain`];
      return written.map((column) => `${path}:${line} sets ${table}.${column}; only ${state.writer} may`);
    }),
  );

/** Names of columns that hold the state of a row, or say who may change it. */
const stateName = /(?:^|[a-z])(?:state|status|outcome|holder|epoch|leaseUntil|endedAt)$/i;

/** Every new table has to name its single writer too. */
export const statesAreListed: Rule = (tree) => {
  const text = tree.modules
    .flatMap((module) => (/^src\/store\/base\/[\w-]*tables\.ts$/.test(module.path) ? module.text : []))
    .join('\n');
  const tables = [...text.matchAll(/^ {2}(\w+): (\w+Table);$/gm)];
  if (tables.length === 0) return ['src/store/base/tables.ts lists no table'];
  return tables.flatMap(([, table = '', type = '']) => {
    const columns = new RegExp(`^export type ${type} = \\{(.*?)\\}`, 'ms').exec(text)?.[1] ?? '';
    const listed = Object.hasOwn(stateColumns, table) ? stateColumns[table]?.columns : undefined;
    return [...columns.matchAll(/(?<![\w.])(\w+)\??: /g)]
      .filter(([, column = '']) => stateName.test(column) && listed?.includes(column) !== true)
      .map(([, column]) => `${table}.${column} has no writer in stateColumns`);
  });
};

/** Type imports count too: modules that can't be understood one by one can't be changed one by one. */
export const noCycles: Rule = (tree) =>
  findCycles(
    new Map(tree.modules.map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])])),
  );

function findCycles(targets: ReadonlyMap<string, Iterable<string>>): readonly string[] {
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (name: string, trail: readonly string[]): void => {
    if (state.get(name) === 'done') return;
    if (state.get(name) === 'open') {
      cycles.push([...trail.slice(trail.indexOf(name)), name].join(' → '));
      return;
    }
    state.set(name, 'open');
    for (const target of targets.get(name) ?? []) visit(target, [...trail, name]);
    state.set(name, 'done');
  };
  for (const name of targets.keys()) visit(name, []);
  return cycles;
}

/**
 * The members of each folder have an order, with sub-folders taken as a unit: a file may import from a sub-folder or be
 * imported by it, but not both.
 */
export const foldersAreRanked: Rule = (tree) => {
  const modules = tree.modules.filter(isIn('src', 'channels', 'plugins'));
  const folders = new Set(
    modules.flatMap(({ path }) => path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/'))),
  );
  return [...folders]
    .filter((folder) => folder !== '')
    .flatMap((folder) => {
      const members = new Map<string, Set<string>>();
      const memberOf = (path: string) => path.slice(folder.length + 1).split('/')[0] ?? '';
      for (const { path, imports } of modules.filter(isIn(folder)))
        for (const { target } of imports) {
          const from = memberOf(path);
          const needed = members.get(from) ?? new Set();
          members.set(from, needed);
          if (target?.startsWith(`${folder}/`) && memberOf(target) !== from) needed.add(memberOf(target));
        }
      return findCycles(members).map((cycle) => `${folder}: ${cycle}`);
    });
};

export const channelsAndPluginsStandAlone: Rule = (tree) =>
  tree.modules.filter(isIn('channels', 'plugins')).flatMap((module) => {
    const own = module.path.split('/').slice(0, 2).join('/');
    const shared = own.startsWith('channels/') ? ['#contracts/', '#channel-kit/'] : ['#contracts/'];
    return module.imports
      .filter(({ target }) => target !== undefined && !target.startsWith(`${own}/`))
      .filter(({ specifier }) => !shared.some((alias) => specifier.startsWith(alias)))
      .map(({ target }) => `${module.path} imports ${target}`);
  });

/** Channel names that are also ordinary words only count as `name:…` or where the value names a channel. */
export const channelNamesStayOut: Rule = (tree) => {
  const names = foldersOf(tree, 'channels');
  const isAllowed = (path: string) => path === 'src/main.ts' || path.startsWith('src/config/');
  return tree.modules
    .filter(isIn('src'))
    .filter(({ path }) => !isAllowed(path))
    .flatMap((module) =>
      module.strings
        .filter((text) => names.some((name) => text === name || text.startsWith(`${name}:`)))
        .map((text) => `${module.path} names the channel "${text}"`),
    );
};

/** A command is one file, named after it: no other code depends on which commands exist. */
export const commandNamesStayHome: Rule = ({ modules }) => {
  const home = 'src/commands/';
  const list = modules.find(({ path }) => path === `${home}list.ts`);
  const names = (list?.imports ?? []).flatMap(({ target }) =>
    target?.startsWith(home) ? [target.slice(home.length, -'.ts'.length)] : [],
  );
  if (names.length === 0) return [`${home}list.ts imports no command`];
  return modules
    .filter(isIn('src', 'channels', 'plugins'))
    .filter(({ path }) => !/^src\/(?:commands|texts|config)\//.test(path))
    .flatMap(({ path, commandUses }) =>
      commandUses
        .filter(({ name }) => names.includes(name))
        .map(({ name, line }) => `${path}:${line} names the chat command "${name}"`),
    );
};

/** Readers of one folder shouldn't have to open another to learn units, errors and sources. */
export const sharedExportsAreDocumented: Rule = (tree) => {
  const shared = new Set(
    tree.modules
      .filter(isIn('src', 'channels', 'plugins'))
      .flatMap((module) =>
        module.imports.flatMap(({ target, names }) =>
          target === undefined || dirname(target) === dirname(module.path)
            ? []
            : names.map((name) => `${target}#${name}`),
        ),
      ),
  );
  return tree.modules
    .filter(isIn('src', 'channels', 'plugins'))
    .flatMap(({ path, exports }) =>
      exports
        .filter(({ name, isDocumented }) => !isDocumented && shared.has(`${path}#${name}`))
        .map(({ name, line }) => `${path}:${line} exports ${name} to other folders without a doc comment`),
    );
};

/** The number of words that a document should have at most, markup included. */
const fewWords: Readonly<Record<string, number>> = { 'README.md': 900, 'ARCHITECTURE.md': 1800 };

/**
 * Newcomers read both from start to end; details belong in docs. Only a warning up to half as many words again: nobody
 * has to reword a paragraph for the sake of a line of their own.
 */
export const documentsAreShort: Rule = ({ root }) =>
  Object.entries(fewWords).flatMap(([document, few]) => {
    const path = join(root, document);
    const words = existsSync(path) ? readFileSync(path, 'utf8').trim().split(/\s+/).length : 0;
    if (words <= few) return [];
    const excess = `${document} has ${words} words and should have ${few}`;
    if (words > 1.5 * few) return [excess];
    console.warn(excess);
    return [];
  });

export const filesAreShort: Rule = (tree) =>
  tree.modules
    .filter(({ path, lineCount }) => lineCount > (path.startsWith('test/') ? 700 : 500))
    .map(({ path, lineCount }) => `${path} has ${lineCount} lines`);

export const functionsAreShort: Rule = (tree) =>
  tree.modules
    .filter(isIn('src', 'channels', 'plugins'))
    .flatMap((module) =>
      module.functions
        .filter(({ lineCount }) => lineCount > 60)
        .map(({ name, line, lineCount }) => `${module.path}:${line} ${name} has ${lineCount} lines`),
    );

const adapterFiles = ['index', 'adapter', 'inbound', 'outbound', 'ids', 'capabilities', 'config'];

export const adaptersHaveOneShape: Rule = (tree) =>
  foldersOf(tree, 'channels').flatMap((name) => {
    const wanted = [...adapterFiles.map((file) => `${file}.ts`), 'README.md'];
    return wanted
      .filter((file) => !existsSync(join(tree.root, 'channels', name, file)))
      .map((file) => `channels/${name}/${file} is missing`);
  });

/** Only one file reads the environment. Tests may set it, and may keep state between their hooks. */
export const noOddConstructs: Rule = (tree) =>
  tree.modules.flatMap((module) =>
    module.oddities
      .filter((oddity) => !isOddityAllowed(module.path, oddity))
      .map((oddity) => `${module.path}:${oddity}`),
  );

function isOddityAllowed(path: string, oddity: string): boolean {
  const isProduct = /^(?:src|channels|plugins)\//.test(path);
  if (oddity.endsWith('process.env')) return !isProduct || path === 'src/config/environment.ts';
  return oddity.endsWith('a module-level let') && !isProduct;
}

/** Files with disk calls that block the process, and why it is safe there to expect the disk to answer. */
const blockingCalls: Readonly<Record<string, string>> = {
  'src/config/config-file.ts': 'a reload has the disk asked first',
  'src/config/env-files.ts': 'a reload has the disk asked first',
  'src/config/write-settings.ts': 'onboarding alone',
  'src/agent/bootstrap-files.ts': 'only on disks of this machine',
  'src/outbox/send-journal.ts': 'the data folder',
  'src/processes/process-files.ts': 'the data folder',
  'src/redis/private-server.ts': 'the data folder, or the folder for temporary files',
  'src/store/open-configured.ts': 'the data folder',
  'src/store/readable-store.ts': 'the data folder',
  'src/channel-kit/own-commands.ts': 'the root folder',
  'plugins/files/descriptor.ts': '/proc',
};

/** On an unreachable network drive a synchronous call never returns, which stops the process. */
export const diskCallsDontBlock: Rule = (tree) =>
  tree.modules
    .filter(isIn('src', 'channels', 'plugins'))
    .filter(({ path }) => !/^src\/(?:cli|backup)\//.test(path) && !Object.hasOwn(blockingCalls, path))
    .flatMap(({ path, imports }) =>
      imports
        .flatMap(({ specifier, names }) => (specifier === 'node:fs' ? names : []))
        .filter((name) => name.endsWith('Sync'))
        .map((name) => `${path} imports ${name}; use node:fs/promises, through DiskCalls for a workspace`),
    );

/** Other load on the machine lengthens any such time, so a suite that depends on one is red elsewhere. */
export const nothingAssertsTime: Rule = (tree) =>
  tree.modules.flatMap(({ path, clockAssertions }) =>
    clockAssertions.map(
      (line) =>
        `${path}:${line} asserts how long something took. Wait for it with patience (test/support/patience.ts), compare twice the length with once, count with an injected clock, or measure it in bench`,
    ),
  );

/** Forms in which tests give a wait its own time limit. */
const ownWaits = [
  /\bdeadlineMs:? ?=? ?\d/,
  /\bpoll\(.*timeout: \d/,
  /\bwait(?:For|Until)\w*\(.*, (?:\{ timeout: )?\d[\d_]*(?: \})?\);?$/,
  /\bAbortSignal\.timeout\(\d/,
  /\buntil(?:AtRest|Said|Ledger)\(.*, \d{1,2}_?000\)/,
];

/** A wait that ends before the general patience of the tests is in effect an assertion about time. */
export const waitsHavePatience: Rule = (tree) =>
  tree.modules.flatMap(({ path, text }) =>
    path.startsWith('test/') && !path.startsWith('test/architecture/')
      ? text
          .split('\n')
          .flatMap((line, index) =>
            ownWaits.some((own) => own.test(line)) && !/\.rejects\b|300_000/.test(line)
              ? `${path}:${index + 1} waits for a time of its own; leave it to patienceMs (test/support/patience.ts)`
              : [],
          )
      : [],
  );

/** fast-check fails a property whose time is over before its first case; `holds` always runs the first case. */
export const budgetsRunOnce: Rule = (tree) =>
  tree.modules
    .filter(({ path }) => path.startsWith('test/') && !path.startsWith('test/architecture/'))
    .filter(({ path, text }) => path !== 'test/support/holds.ts' && text.includes('fc.assert('))
    .filter(({ text }) => text.includes('interruptAfterTimeLimit'))
    .map(({ path }) => `${path} gives fc.assert a time limit; use holds (test/support/holds.ts)`);

/** Every path that a document names in backticks or links to must exist, unless it calls it "a new file". */
export const documentedPathsExist: Rule = (tree) =>
  documentsOf(tree.root).flatMap((document) => {
    const text = readFileSync(join(tree.root, document), 'utf8').replace(
      /```[\s\S]*?```|`[^`\n]+`, a new file/g,
      '',
    );
    return [...namedPaths(text), ...linkedPaths(text)]
      .filter(
        (path) => !existsSync(join(tree.root, path)) && !existsSync(join(tree.root, dirname(document), path)),
      )
      .map((path) => `${document} names ${path}, which is not there`);
  });

/** Every source file that a comment names must exist. */
export const commentedFilesExist: Rule = ({ modules }) => {
  const known = new Set(modules.map(({ path }) => basename(path)));
  return modules.filter(isIn('src', 'channels', 'plugins')).flatMap(({ path, text }) =>
    (text.match(/\/\*[\s\S]*?\*\/|(?:^|\s)\/\/[^\n]*/g) ?? [])
      .flatMap((comment) => comment.match(/[\w-]+(?:\.[\w-]+)*\.ts\b/g) ?? [])
      .filter((name) => !known.has(name))
      .map((name) => `${path} names ${name}, which is not there`),
  );
};

/** Returns every document of the project, relative to `root`. */
export function documentsOf(root: string): readonly string[] {
  const inFolder = (folder: string) =>
    existsSync(join(root, folder))
      ? readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
          .filter((name) => name.endsWith('.md'))
          .map((name) => join(folder, name))
      : [];
  const atRoot = readdirSync(root).filter((name) => name.endsWith('.md'));
  return [
    ...atRoot,
    ...inFolder('docs'),
    ...inFolder('channels'),
    ...inFolder('plugins'),
    ...inFolder('bench'),
    ...inFolder('proof'),
  ];
}

const knownTops = /^(?:src|channels|plugins|test|scripts|bench|docs|bin|\.ci)\/[\w./-]*$/;

function namedPaths(text: string): readonly string[] {
  return [...text.matchAll(/`([^`\s]+)`/g)].flatMap(([, code = '']) => (knownTops.test(code) ? [code] : []));
}

function linkedPaths(text: string): readonly string[] {
  return [...text.matchAll(/\]\(([^)\s#]+)(?:#[^)]*)?\)/g)].flatMap(([, link = '']) =>
    /^[a-z]+:/i.test(link) ? [] : [link],
  );
}

function isIn(...tops: readonly string[]) {
  return (module: Module) => tops.some((top) => module.path.startsWith(`${top}/`));
}

function foldersOf(tree: SourceTree, top: string): readonly string[] {
  const folder = join(tree.root, top);
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}
