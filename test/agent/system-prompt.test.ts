import { describe, expect, it } from 'vitest';
import { agentId } from '#contracts/ids.ts';
import { buildSystemPrompt, type PromptInput } from '../../src/agent/system-prompt.ts';
import { aTool } from './support/builders.ts';

const anInput = (changes: Partial<PromptInput> = {}): PromptInput => ({
  mode: 'full',
  agent: { id: agentId('main'), name: 'Parley', instructions: 'Be kind.' },
  tools: [aTool('read')],
  skills: [],
  files: [
    { name: 'AGENTS.md', text: 'the rules' },
    { name: 'SOUL.md', text: 'the soul' },
    { name: 'USER.md', text: 'about Grace' },
  ],
  chat: 'group',
  ...changes,
});
const textOf = (input: PromptInput) =>
  buildSystemPrompt(input)
    .map(({ text }) => text)
    .join('\n');

describe('the system prompt', () => {
  it('keeps the prompt stable, with separate blocks for text about tools', () => {
    const files = (['AGENTS.md', 'TOOLS.md', 'USER.md'] as const).map((name) => ({
      name,
      text: `in ${name}`,
    }));
    const blocks = buildSystemPrompt(anInput({ files, tools: [aTool('message'), aTool('sessions_spawn')] }));
    const stable = { text: expect.any(String), isStable: true };
    const aboutTools = { ...stable, isAboutTools: true };
    expect(blocks).toEqual([stable, aboutTools, stable, aboutTools, stable]);
    const rest = blocks.filter(({ isAboutTools }) => !isAboutTools).map(({ text }) => text);
    expect(rest.join('\n')).toMatch(/NO_REPLY[\s\S]*in AGENTS.md[\s\S]*in USER.md/);
    expect(rest.join('\n')).not.toMatch(/tool/i);
  });

  it('states name, tools, rules and place in a fixed order', () => {
    const text = textOf(anInput());
    const order = [
      'NO_REPLY',
      'Your name is Parley',
      'Be kind.',
      'these tools: read',
      'the rules',
      'the soul',
      'about Grace',
      'group conversation',
    ];
    const places = order.map((each) => text.indexOf(each));
    expect(places.every((place) => place >= 0)).toBe(true);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
  });

  it('contains no character that would make the text of a whole request two bytes wide', () => {
    const texts = [
      textOf(anInput({ tools: [aTool('sessions_spawn')] })),
      textOf(anInput({ mode: 'minimal' })),
    ];
    const isWide = (character: string) => character.charCodeAt(0) > 0xff;
    expect([...texts.join('')].filter(isWide)).toEqual([]);
  });

  it('tells sub-agents the rules but nothing about the person', () => {
    const text = textOf(anInput({ mode: 'minimal' }));
    expect(text).toContain('the rules');
    expect(text).toContain('NO_REPLY');
    expect(text).toContain('untrusted');
    expect(text).not.toContain('the soul');
    expect(text).not.toContain('about Grace');
  });

  it('tells a sub-agent its task and reader, and nothing about chats', () => {
    const text = textOf(anInput({ mode: 'minimal' }));
    expect(text).toContain('You are a sub-agent');
    expect(text).not.toMatch(/chat messages|group conversation|Ask before/);
    expect(text).toContain('tells the time');
  });

  it('explains sub-agents only to agents that may start them', () => {
    expect(textOf(anInput({ tools: [aTool('sessions_spawn')] }))).toContain('ANNOUNCE_SKIP');
    expect(textOf(anInput())).not.toContain('ANNOUNCE_SKIP');
  });

  it('mentions no tools if there are none', () => {
    expect(textOf(anInput({ tools: [] }))).not.toContain('## Tools');
  });
});
