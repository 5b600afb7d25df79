import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fileSchema } from '../../src/config/schema.ts';
import { type Names, readNames } from './names.ts';
import { findUnusedExports } from './unused-exports.ts';

const files = readNames(process.cwd());
const product = files.filter(({ path }) => /^(src|channels|plugins)\//.test(path));

describe('exports', () => {
  const promised = new Set([
    // Spec 5: an entry point for other programs that use the loop; a run calls `agentLoopResume`.
    'src/agent/loop.ts#agentLoop',
    // A test that runs one command after the other awaits it; it imports the program by the address of a file.
    'src/main.ts#ended',
    // The type check holds these tables complete; a test reads that each has its reasons.
    'channels/discord/content-fates.ts#contentFates',
    'channels/discord/event-fates.ts#eventFates',
    // The page calls them, whose own modules the type check doesn't read.
    ...['entriesInOrder', 'isWorking', 'retryIdOf'].map((name) => `src/client/conversation.js#${name}`),
    ...['subtaskFacts', 'subtaskTime', 'subtaskWords', 'taskNews', 'totalOf'].map(
      (name) => `src/client/task-facts.js#${name}`,
    ),
  ]);

  it('uses every export outside its file, or tests it', () => {
    const unused = findUnusedExports(files).filter((name) => !promised.has(name));
    expect(unused).toEqual([]);
  });

  it('finds an export that only a test or nothing uses', () => {
    const aFile = (path: string, over: Partial<Names> = {}): Names => ({
      path,
      exported: [],
      imported: new Set(),
      identifiers: new Map(),
      members: new Set(),
      chains: new Set(),
      events: [],
      types: [],
      ...over,
    });
    const noun = aFile('src/store/noun.ts', {
      exported: [
        { name: 'used', isType: false },
        { name: 'lazy', isType: false },
        { name: 'tested', isType: false },
        { name: 'inner', isType: false },
        { name: 'innerTested', isType: false },
        { name: 'Inner', isType: true },
        { name: 'Dead', isType: true },
      ],
      identifiers: new Map([
        ['tested', 1],
        ['inner', 2],
        ['innerTested', 2],
        ['Inner', 2],
        ['Dead', 1],
      ]),
    });
    const user = aFile('src/main.ts', {
      imported: new Set(['src/store/noun.ts#used', 'src/store/noun.ts#?']),
      identifiers: new Map([['lazy', 1]]),
    });
    const test = aFile('test/store/noun.test.ts', {
      imported: new Set(['src/store/noun.ts#tested', 'src/store/noun.ts#innerTested']),
    });
    const found = findUnusedExports([noun, user, test]);
    expect(found.map((each) => each.split('#')[1])).toEqual(['tested', 'inner', 'Dead']);
  });
});

describe('types', () => {
  /** Nouns and adjectives of the glossary that end like participles. */
  const nouns = /^(?:Binding|Right|Setting)$/;

  it('names no type by a bare participle', () => {
    const named = product.flatMap(({ path, types }) => types.map((name) => `${path}#${name}`));
    const odd = named.filter((each) => {
      const [, name = ''] = each.split('#');
      return /^[A-Z][a-z]+(?:ing|ed|ept|old|ught)$/.test(name) && !nouns.test(name);
    });
    expect(named.length).toBeGreaterThan(500);
    expect(odd).toEqual([]);
  });
});

describe('settings', () => {
  /** Read by the part of Parley that reads and checks the settings, or by editors. */
  const readByConfig = new Set([
    '$schema',
    'allowInsecureRedis',
    'providers.*.headersEnv',
    'providers.*.keysEnv',
    'tracing.headersEnv',
  ]);

  type Schema = {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly items?: Schema;
    readonly additionalProperties?: Schema | boolean;
  };

  const leavesOf = (schema: Schema, path: readonly string[] = []): readonly string[] => {
    const within = [
      ...Object.entries(schema.properties ?? {}),
      ...(schema.items ? [['*', schema.items] as const] : []),
      ...(typeof schema.additionalProperties === 'object'
        ? [['*', schema.additionalProperties] as const]
        : []),
    ];
    const deeper = within.flatMap(([name, each]) => leavesOf(each, [...path, name]));
    return deeper.length > 0 ? deeper : [path.join('.')];
  };

  /**
   * Says whether anything reads `a.b.c`: as `b.c`, or as `c` where all of `a` is passed on. Passing on `a.b` counts for
   * everything in it, such as `lanes.concurrency`. Channels and plugins read their settings by their own schemas.
   */
  const createIsRead = (readers: readonly Pick<Names, 'members' | 'chains'>[]) => {
    const chains = readers.flatMap((file) => [...file.chains].map((chain) => `.${chain}.`));
    const members = new Set(readers.flatMap((file) => [...file.members]));
    const isAnywhere = (way: string) => chains.some((chain) => chain.includes(`.${way}.`));
    const isPassedOn = (way: string) => chains.some((chain) => chain.endsWith(`.${way}.`));
    return (leaf: string): boolean => {
      const names = leaf.split('.').filter((name) => name !== '*');
      const [name = '', group, above] = names.toReversed();
      if (group === undefined) return isAnywhere(`config.${name}`) || isAnywhere(`?.${name}`);
      if (isAnywhere(`${group}.${name}`)) return true;
      if (above !== undefined && isPassedOn(`${above}.${group}`)) return true;
      const [top = ''] = names;
      const isOwnSchema = top === 'channels' || top === 'plugins';
      const isWhole = isOwnSchema || isPassedOn(`config.${top}`) || isPassedOn(`?.${top}`);
      return isWhole && (members.has(name) || (above !== undefined && members.has(group)));
    };
  };

  it('reads every setting', () => {
    const leaves = leavesOf(z.toJSONSchema(fileSchema, { io: 'input', unrepresentable: 'any' }) as Schema);
    expect(leaves.length).toBeGreaterThan(80);
    const isRead = createIsRead(product.filter(({ path }) => !path.startsWith('src/config/')));
    const unread = leaves.filter((leaf) => {
      // Any other keys of a channel or plugin belong to it.
      if (readByConfig.has(leaf) || /^(?:channels|plugins)\.\w+\.\*$/.test(leaf)) return false;
      return !isRead(leaf);
    });
    expect(unread).toEqual([]);
  });

  it.each([
    ['lanes.concurrency.main', 'config.lanes.leaseMs', false],
    ['lanes.concurrency.main', 'config.queue.concurrency', false],
    ['lanes.concurrency.main', 'config.lanes.concurrency', true],
    ['run.turns', 'counts.turns', false],
    ['run.turns', 'config.run.turns', true],
    ['run.turns', '?.run.turns.length', true],
    ['port', 'server.port', false],
    ['port', 'config.port', true],
  ])('judges the setting %s by its path: %s', (leaf, chain, isRead) => {
    const members = new Set(chain.split('.').slice(1));
    expect(createIsRead([{ members, chains: new Set([chain]) }])(leaf)).toBe(isRead);
  });
});

describe('log events', () => {
  /** Endings for something that happened other than "ed": other participles, and words that go with one. */
  const irregular = /[-.](?:again|begun|died|found|held|kept|lost|over|read|stuck|taken|told|written)$/;

  it('names log events for what happened: `noun.past-tense`, kebab-case', () => {
    const events = product.flatMap((file) => file.events);
    expect(events.length).toBeGreaterThan(100);
    const form = /^[a-z]+(?:-[a-z]+)*\.[a-z]+(?:-[a-z]+)*$/;
    const odd = events.filter(
      (event) => !form.test(event) || !(event.endsWith('ed') || irregular.test(event)),
    );
    expect([...new Set(odd)]).toEqual([]);
  });
});
