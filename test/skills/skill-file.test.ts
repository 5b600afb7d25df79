import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { maxSkillFileBytes, parseSkillFile } from '../../src/skills/skill-file.ts';
import { isLong } from '../support/long-run.ts';
import { maliciousSkills, publicSkills } from './public-skills.ts';

const runs = { numRuns: isLong ? 20_000 : 1_000 };
const parse = (text: string | Uint8Array, folder = 'weather') =>
  parseSkillFile(typeof text === 'string' ? Buffer.from(text) : text, folder);
const withMatter = (matter: string, body = 'Do it.') => `---\n${matter}\n---\n${body}\n`;

describe('SKILL.md', () => {
  it.each(publicSkills)('accepts the front matter of public skills: $name', async (skill) => {
    expect(await parse(withMatter(skill.matter), skill.name)).toMatchObject({
      kind: 'skill',
      name: skill.name,
      description: expect.stringMatching(skill.description),
    });
  });

  it.each(maliciousSkills)('reads no rights from a skill that wants them: $name', async ({ name, text }) => {
    const parsed = await parse(text, name);
    expect(Object.keys(parsed).sort()).toEqual(['description', 'kind', 'name']);
  });

  it('accepts CR LF, a byte order mark and nothing behind the front matter', async () => {
    for (const text of [
      '---\r\nname: weather\r\ndescription: It tells.\r\n---\r\nDo it.\r\n',
      '---\r\nname: weather\r\ndescription: "It tells."\r\n---\r\nDo it.\r\n',
      '\ufeff---\nname: weather\ndescription: It tells.\n---',
      '---  \nname: weather\ndescription: It tells.\n---\t\n',
    ])
      expect(await parse(text)).toEqual({ kind: 'skill', name: 'weather', description: 'It tells.' });
  });

  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]', 'b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]', 'c: [*b,*b,*b,*b]'];
  const refused: readonly (readonly [what: string, text: string | Uint8Array, says: RegExp])[] = [
    ['no front matter', '# Weather\n', /must begin with a line ---/],
    ['an empty file', '', /must begin/],
    ['text before it', `Hello\n${withMatter('name: weather\ndescription: x')}`, /must begin/],
    ['no second line', '---\nname: weather\ndescription: x\n', /must begin/],
    ['an empty front matter', '---\n---\nDo it.', /a name and a description/],
    ['a list', withMatter('- name\n- weather'), /a name and a description/],
    ['no name', withMatter('description: x'), /its name is missing/],
    ['no description', withMatter('name: weather'), /description is missing/],
    ['an empty description', withMatter('name: weather\ndescription: " "'), /description is empty/],
    ['an invisible description', withMatter('name: weather\ndescription: "\\u200b\\u202e"'), /is empty/],
    ['a description that is a list', withMatter('name: weather\ndescription: [a]'), /is no text/],
    ['a long description', withMatter(`name: weather\ndescription: ${'x'.repeat(1025)}`), /more than 1024/],
    [
      'a long compatibility',
      withMatter(`name: weather\ndescription: x\ncompatibility: ${'x'.repeat(501)}`),
      /more than 500/,
    ],
    ['another name', withMatter('name: wether\ndescription: x'), /its folder is called "weather"/],
    ['a name in capitals', withMatter('name: Weather\ndescription: x'), /only have a-z/],
    ['a name with a path', withMatter('name: ../weather\ndescription: x'), /only have a-z/],
    ['a name that is a number', withMatter('name: 42\ndescription: x'), /is no text/],
    ['a long name', withMatter(`name: ${'x'.repeat(65)}\ndescription: x`), /more than 64/],
    ['an unquoted colon', withMatter('name: weather\ndescription: Use when: it rains'), /in quotes/],
    ['the same key twice', withMatter('name: weather\nname: weather\ndescription: x'), /unique/i],
    ['aliases', withMatter(`name: weather\ndescription: x\n${bomb.join('\n')}`), /alias/i],
    ['a merge key', withMatter('base: &b {name: weather}\n<<: *b\ndescription: x'), /alias|missing/i],
    ['a tag that makes code', withMatter('name: weather\ndescription: !!js/function "x"'), /tag/i],
    ['deep brackets', withMatter(`name: weather\ndescription: ${'['.repeat(5_000)}`), /nested too deeply/],
    ['deep dashes', withMatter(`name: weather\ndescription: x\na:\n ${'- '.repeat(5_000)}x`), /too deeply/],
    ['a long front matter', withMatter(`name: weather\ndescription: x\na: ${'x'.repeat(17_000)}`), /limit/],
    [
      'a long file',
      withMatter('name: weather\ndescription: x', 'x'.repeat(maxSkillFileBytes)),
      /Move details/,
    ],
    ['bytes that are no text', Buffer.concat([Buffer.from(withMatter('name: x')), Buffer.of(0xff)]), /UTF-8/],
  ];
  it.each(refused)('refuses %s and says why', async (_, text, says) => {
    expect(await parse(text)).toEqual({ kind: 'refused', problem: expect.stringMatching(says) });
  });

  it('warns of instructions that are longer than recommended', async () => {
    const parsed = await parse(withMatter('name: weather\ndescription: x', 'words '.repeat(4_000)));
    expect(parsed).toMatchObject({ kind: 'skill', warning: expect.stringMatching(/about 6001 tokens/) });
  });

  it('accepts exactly the names and descriptions that the specification allows', async () => {
    const names = fc.oneof(
      fc.stringMatching(/^[a-z0-9-]{1,70}$/),
      fc.stringMatching(/^[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,3}$/),
      fc.string({ unit: 'grapheme' }),
    );
    const descriptions = fc.oneof(
      fc.string({ minLength: 1, maxLength: 1100 }),
      fc.string({ unit: 'grapheme', maxLength: 1100 }),
      fc.constant('é'.repeat(1024)),
    );
    await fc.assert(
      fc.asyncProperty(names, descriptions, async (name, description) => {
        const parsed = await parse(withMatter(stringify({ name, description }).trimEnd()), name);
        const isName = name.length <= 64 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(name);
        if (parsed.kind === 'refused') {
          const shown = description.replace(/[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '');
          expect(isName && description.length <= 1024 && shown !== '').toBe(false);
          return;
        }
        expect(isName).toBe(true);
        expect(parsed.description).toMatch(/^[^\s\p{Cc}\p{Cf}].*$/u);
        expect(parsed.description).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
      }),
      runs,
    );
  });

  it('answers to any bytes, however they are nested', async () => {
    const lines = fc.array(
      fc.oneof(
        fc.constantFrom(
          '---',
          'name: weather',
          'description: x',
          '- - - -',
          '? a',
          '&a',
          '*a',
          '{',
          '[',
          '"',
          '|',
          '>',
        ),
        fc.constantFrom(
          '!!binary x',
          '%YAML 9',
          '...',
          '\t',
          '#',
          ': ',
          '<<: *a',
          '!<tag:yaml.org,2002:js> x',
          '\0',
        ),
        fc.string({ unit: 'binary', maxLength: 200 }),
      ),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(lines, async (parts) => {
        const { kind } = await parse(withMatter(parts.join('\n')));
        expect(['skill', 'refused']).toContain(kind);
      }),
      runs,
    );
  });
});
