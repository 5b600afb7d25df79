import { describe, expect, it } from 'vitest';
import { createPreviewText } from '../../src/replies/preview.ts';

const aPreview = (maxLength = 4096) =>
  createPreviewText({ context: ['chat'], capabilities: { text: { maxLength } } });

describe('preview texts', () => {
  it('shows nothing of a silent answer and formats what may be shown', () => {
    const preview = aPreview();
    preview.push('NO_');
    expect(preview.now()).toBeUndefined();
    preview.push('REPLY');
    expect(preview.now()).toBeUndefined();
    preview.reset();
    preview.push('<think>hm</think>Hello **you** there');
    expect(preview.now()).toEqual({
      text: 'Hello you there',
      spans: [{ kind: 'bold', start: 6, length: 3 }],
    });
  });

  it('never takes back shown text', () => {
    const preview = aPreview();
    preview.push('reply_skip`');
    const before = preview.now();
    preview.push('<');
    expect(preview.now()).toEqual(before);
  });

  it('shortens text beside a tool call to a progress line, and drops it with the next answer (pitfall 26)', () => {
    const preview = aPreview();
    preview.push('I will look that\nup for you now.');
    preview.toolStarted('web_search');
    expect(preview.now()?.text).toBe('⚙ web_search: I will look that up for you now.');
    preview.toolStarted('list');
    expect(preview.now()?.text).toBe('⚙ web_search: I will look that up for you now.\n⚙ list');
    preview.push('It is ten.');
    expect(preview.now()?.text).toBe('It is ten.');
    preview.reset();
    expect(preview.now()).toBeUndefined();
  });

  it('keeps progress lines few and short', () => {
    const preview = aPreview();
    for (const name of ['a', 'b', 'c', 'd']) {
      preview.push('word '.repeat(100));
      preview.toolStarted(name);
    }
    const lines = preview.now()?.text.split('\n') ?? [];
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(90);
  });

  it('shows the beginning of a text that is longer than one message', () => {
    const preview = aPreview(50);
    preview.push('word '.repeat(100));
    const text = preview.now()?.text ?? '';
    expect(text.length).toBeLessThanOrEqual(50);
    expect(text).toMatch(/^word word.*word…$/);
  });
});
