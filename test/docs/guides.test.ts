import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PermissionFlagsBits } from 'discord.js';
import { expect, it } from 'vitest';
import { bootstrapNames, createBootstrapFiles } from '../../src/agent/bootstrap-files.ts';
import { warnOfUnpriced } from '../../src/cli/unpriced-models.ts';
import { environmentNames, readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import english from '../../src/texts/en.json' with { type: 'json' };
import { aFolder } from '../support/own-folder.ts';

const guides = ['telegram.md', 'discord.md', 'signal.md', 'team.md', 'agent-files.md'];
const read = (name: string) => readFileSync(`docs/${name}`, 'utf8');

/** Returns the blocks of code in one language. */
function blocksIn(text: string, language: string): readonly string[] {
  const blocks = text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'));
  return [...blocks].map(([, code = '']) => code);
}

/** Loads an example with the keys and tokens that the examples refer to. */
function load(file: string) {
  const home = aFolder();
  writeFileSync(join(home, 'parley.config.json'), file);
  const telegram = '123456789:AAF0123456789abcdefghijklmnopqrs-_x';
  return loadConfig(
    readEnvironment({
      ANTHROPIC_API_KEY: 'sk-ant-api03-0123456789abcdefghijklmnop',
      OPENAI_API_KEY: 'sk-proj-0123456789abcdefghijklmnop',
      HOUSE_API_KEY: '0123456789abcdefghijklmnop',
      ALERTS_SECRET: '5d0b7c1e9a3f48d2',
      TELEGRAM_BOT_TOKEN: telegram,
      ...(file.includes('"work"') && { TELEGRAM_BOT_TOKEN_WORK: telegram.replace('1234', '2234') }),
      HOME_BOT: telegram.replace('1234', '3234'),
    }),
    home,
  );
}

it('links only to sections that exist', () => {
  const documents = ['README.md', ...readdirSync('docs').map((name) => `docs/${name}`)];
  const links = documents
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)].map(
        ([, file = '', section = '']) => ({
          section,
          target: file === '' ? path : join(dirname(path), file),
        }),
      ),
    );
  expect(links.length).toBeGreaterThan(3);
  const sectionsOf = (path: string) =>
    [...readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
  expect(links.filter(({ target, section }) => !sectionsOf(target).includes(section))).toEqual([]);
});

it('accepts every example of a configuration in the documents', () => {
  const examples = readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => blocksIn(read(name), 'json'));
  expect(examples.length).toBeGreaterThan(6);
  for (const example of examples) expect(() => load(example), example).not.toThrow();
});

it('describes a team with one owner, four group members, a fallback model and priced budgets', () => {
  const [file = ''] = blocksIn(read('team.md'), 'json');
  const config = load(file);
  expect(config).toMatchObject({
    owners: expect.arrayContaining(['telegram:100001']),
    access: { groups: { 'telegram:-1001234567890': { allowFrom: { length: 4 } } } },
    models: { first: { fallbacks: ['spare'] }, spare: { provider: 'openai' } },
  });
  expect(warnOfUnpriced(config)).toBeUndefined();
});

it("quotes only Parley's own texts in the guides", () => {
  const texts = Object.values<string>(english);
  const quotes = guides.flatMap((name) =>
    [...read(name).matchAll(/“([^”]+)”/g)].map(([, quote = '']) => quote.replace(/\s+/g, ' ')),
  );
  expect(quotes.length).toBeGreaterThan(15);
  expect(quotes.filter((quote) => !texts.some((text) => text.includes(quote)))).toEqual([]);
});

it('names only variables in the guides that Parley, Compose or the Signal server reads', () => {
  const compose = readFileSync('docker-compose.yml', 'utf8');
  const named = [...guides, 'troubleshooting.md'].flatMap(
    (name) => read(name).match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? [],
  );
  expect(named).toContain('SIGNAL_WEBHOOK_SECRET');
  const known = (name: string) => environmentNames.some((one) => one === name) || compose.includes(name);
  expect(named.filter((name) => !known(name))).toEqual([]);
});

it('names only settings that exist', () => {
  const settings = [...read('settings.md').matchAll(/^\| `([^`]+)`/gm)].map(([, path = '']) =>
    path.split('.'),
  );
  const groups = new Set(settings.map(([group]) => group));
  const names = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'settings.md');
  const named = names.flatMap((name) =>
    [...read(name).matchAll(/`([a-z][\w[\]]*(?:\.[\w<>[\]-]+)+)`/g)].flatMap(([, path = '']) =>
      groups.has(path.split('.')[0]) && !/\.(?:ts|md|json|js|mjs|yml)$/.test(path) ? [path] : [],
    ),
  );
  expect(named.length).toBeGreaterThan(40);
  const isKnown = (path: string) =>
    settings.some((known) =>
      path.split('.').every((word, at) => known[at] === word || known[at]?.startsWith('<')),
    );
  expect(named.filter((path) => !isKnown(path))).toEqual([]);
});

it('invites the Discord bot with exactly the permissions that the guide explains', () => {
  const guide = read('discord.md');
  const flags: Readonly<Record<string, bigint>> = PermissionFlagsBits;
  const table = guide.slice(guide.indexOf('| permission |'));
  const labels = [...table.slice(0, table.indexOf('\n\n')).matchAll(/^\| ([A-Z][A-Za-z ]+) \|/gm)];
  const bits = labels.map(([, label = '']) => {
    const name = label.replace(/ in /, ' In ').replaceAll(' ', '');
    return flags[name] ?? flags[name.replace(/s$/, '')] ?? 0n;
  });
  expect(bits).toHaveLength(6);
  expect(bits).not.toContain(0n);
  const [, scopes, permissions] = /scope=([\w.+]+)&permissions=(\d+)/.exec(guide) ?? [];
  expect(scopes).toBe('bot+applications.commands');
  expect(permissions).toBe(String(bits.reduce((all, bit) => all | bit, 0n)));
});

it('has an example of each file that shapes an agent, which the agent reads in full', async () => {
  const guide = read('agent-files.md');
  const examples = [...guide.matchAll(/^`([A-Z]+\.md)`\n\n```markdown\n([\s\S]*?)```/gm)];
  expect(examples.map(([, name]) => name)).toEqual([...bootstrapNames]);
  const workspace = aFolder();
  mkdirSync(workspace, { recursive: true });
  for (const [, name = '', text = ''] of examples) writeFileSync(join(workspace, name), text);
  const files = await createBootstrapFiles({ workspace }).read();
  expect(files.map(({ text }) => text)).toEqual(examples.map(([, , text = '']) => text.trim()));
});
