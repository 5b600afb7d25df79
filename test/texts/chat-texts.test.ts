import { describe, expect, it } from 'vitest';
import { type TextKey, textsFor } from '../../src/texts/chat-texts.ts';
import german from '../../src/texts/de.json' with { type: 'json' };
import english from '../../src/texts/en.json' with { type: 'json' };
import { readSourceTexts } from './source-texts.ts';

const keys = Object.keys(english) as readonly TextKey[];

describe('the table of chat texts', () => {
  it('has no unused chat text', () => {
    const names = readSourceTexts()
      .filter(({ path }) => path.startsWith('src/') && !path.startsWith('src/texts/'))
      .flatMap(({ text }) => text.match(/\w+/g) ?? []);
    const named = new Set(names);
    expect(keys.filter((name) => !named.has(name))).toEqual([]);
  });

  it.each([
    ['English', english],
    ['German', german],
  ])('has menu texts in %s that fit every network', (_, texts) => {
    const menus = Object.entries(texts).filter(([name]) => name.endsWith('Menu'));
    expect(menus.length).toBeGreaterThan(8);
    expect(menus.filter(([, text]) => text.length < 3 || text.length > 100)).toEqual([]);
  });

  it('uses no straight apostrophes and no internal terms in English', () => {
    const odd = /\w'\w|\b(?:lanes?|epochs?|parts?|whoever|what waits)\b/i;
    expect(Object.entries(english).filter(([, text]) => odd.test(text))).toEqual([]);
  });
});

describe('German', () => {
  const namesIn = (text: string) => [...new Set(text.match(/\{\w+\}/g))].sort();
  const commandsIn = (text: string) => [...new Set(text.match(/(?<!\w)\/[a-z{}]+/g))].sort();

  it('has the same placeholders in German as in English', () => {
    const differing = keys.filter((key) => `${namesIn(german[key])}` !== `${namesIn(english[key])}`);
    expect(differing).toEqual([]);
  });

  it('names the same commands in German as in English', () => {
    const differing = keys.filter((key) => `${commandsIn(german[key])}` !== `${commandsIn(english[key])}`);
    expect(differing).toEqual([]);
  });

  it('leaves no text in English in the German table', () => {
    // Texts that are the same in both languages.
    const shared: readonly TextKey[] = ['itemLine', 'whoamiAgent'];
    const same = keys.filter((key) => german[key] === english[key] && !shared.includes(key));
    expect(same).toEqual([]);
    const words = /\b(?:the|and|is|are|your?|my|I|to|of|for|send|with|from|please|this|that)\b/;
    const bare = (text: string) => text.replace(/\{\w+\}|\/\w+/g, '');
    expect(keys.filter((key) => words.test(bare(german[key])))).toEqual([]);
  });

  it('chooses German by the first part of a language tag, and English for any other language', () => {
    expect(textsFor('de-AT').stopped).toBe(german.stopped);
    expect(textsFor('constructor').stopped).toBe(english.stopped);
    expect(textsFor('de', { stopped: 'Halt.' })).toMatchObject({
      stopped: 'Halt.',
      newSession: german.newSession,
    });
  });
});
