import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toMarkdown } from '../../channels/discord/markup.ts';
import { toStyledText } from '../../channels/signal/styled-text.ts';
import { hideLiterals, showLiterals } from '../../src/replies/literal-text.ts';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import { rendered } from '../channels/discord/rendered.ts';
import { readStyledText } from '../platforms/signal/styled-text.ts';
import { check } from './reply-generators.ts';

/** What people see of a text on each network. Telegram and the page get the text itself. */
function shownTexts(markdown: string): readonly string[] {
  const formatted = formatMarkdown(markdown);
  const { message, textMode } = toStyledText(formatted);
  const onSignal = textMode === 'normal' ? message : readStyledText(message, 'head').text;
  return [formatted.text, rendered(toMarkdown(formatted)).text, onSignal];
}

const formulas = [
  '$E=mc^2$',
  '$a_1*b_1$',
  '$(a^{ij}_k)$',
  '$\\hat{\\dot{m}_{f_{s}}}$',
  '$p=25.6\\$$',
  '$\\text{Text_Text}$',
  '\\(a_1*b_2\\)',
  '\\(x\\)',
  '\\[ \\sum_{i=1}^n x_i * y_i \\]',
  '$$\\underbrace{1}_{2} \\underbrace{1}_{2}$$',
  '$$a*b*c$$',
];
const displays = [
  '\\[\n\\begin{aligned}\na &= b \\\\\n  &= c\n- d\n+ e\n\\end{aligned}\n\\]',
  '$$\nA_a \\Rightarrow B_b\n$$',
  '$$\n1. x_1\n# y_1\n> z\n===\n$$',
  '\\[\n\nx_1 = *y*\n\n\\]',
];
const patterns = [
  'src/**/*.ts',
  '*.log',
  '*.tar.gz',
  '**/*.ts',
  '**/node_modules/**',
  '/var/log/*',
  '*.test.*',
  '*.*',
  'test_*_spec.py',
  '*_test.go',
  '{src,test}/**/*.{ts,tsx}',
  '*.ts/*.js',
  '.*foo.*',
  '*/5 * * * *',
  'C:\\logs\\*.log',
  '\\\\server\\some_share_x\\y',
  '__init__.py',
  '__init__',
  '__tests__/a_test_b.ts',
  'snake_case_name',
  '_private_var',
  'a*b*c',
  '2*3*4',
  '2**3**4',
  'x**2 + y**2',
  'f(x)*g(x)*h(x)',
  '(a*b)*(c*d)',
  'e**(-x**2) * y**(2)',
  '/etc/*-release and /proc/*/fd/*',
  'test/*_spec_*.rb',
  '*args, **kwargs',
  'int **argv and char **envp',
];

describe('formulas, file patterns and names', () => {
  it.each([...formulas, ...displays, ...patterns])('shows %j as written, on every network', (literal) => {
    for (const markdown of [literal, `See: ${literal}`, `${literal}\n\n**bold** and *more*`])
      for (const shown of shownTexts(markdown)) expect(shown).toContain(literal);
  });

  it('keeps literals among other markup, byte for byte', () => {
    const around = [
      '*it*',
      '**bold**',
      '~~gone~~',
      '[a](https://x.example)',
      'word',
      '`code`',
      '**注意：**好',
      '$5',
      '- item\n',
      '\n\n',
      '|',
    ];
    const pieces = fc.array(fc.constantFrom(...around), { maxLength: 6 });
    const literals = fc.constantFrom(...formulas, ...patterns.filter((pattern) => !/\s/.test(pattern)));
    check(
      fc.property(pieces, literals, pieces, (before, literal, after) => {
        const markdown = [...before, literal, ...after].join(' ');
        for (const shown of shownTexts(markdown)) expect(shown).toContain(literal);
      }),
      5_000,
    );
  });

  it.each([
    ['- f:\n  $$\n  x_1 * y_1\n  $$\n- g', '• f:\n  $$\n  x_1 * y_1\n  $$\n• g'],
    ['> $$\n> x_1\n> $$', '$$\nx_1\n$$'],
    ['| a | $|x|$ |\n|--|--|\n| $5 | `*` |', 'a   $|x|$\n──  ─────\n$5  *'],
    ['`$x` and $y_1*z_1$', '$x and $y_1*z_1$'],
    ['```\n$a*b*\n```\n$5', '$a*b*\n\n$5'],
  ])('shows the formula in %j within its list, quote or table', (markdown, text) => {
    expect(formatMarkdown(markdown).text).toBe(text);
  });

  // Prices after reports on lobehub, claude-code, gpt_markdown, bobrchat and omnigent.
  it.each([
    ['costs $5 and $10 with **bold**', 'costs $5 and $10 with bold', ['bold']],
    ['now **$4** and **$5**', 'now $4 and $5', ['$4', '$5']],
    ['**$800** and 5$ **x**', '$800 and 5$ x', ['$800', 'x']],
    ['$123 - $234, *cheap*', '$123 - $234, cheap', ['cheap']],
    ['$/PR is *down* but $/session is up', '$/PR is down but $/session is up', ['down']],
    ['$HOME and **$PATH** are $SET', '$HOME and $PATH are $SET', ['$PATH']],
    ['**Yes**/**No**', 'Yes/No', ['Yes', 'No']],
    ['**H**yper**T**ext', 'HyperText', ['H', 'T']],
    ['**Python**-based, *x*-axis', 'Python-based, x-axis', ['Python', 'x']],
    ['**src/**/*.ts** and **a/b**', 'src/**/*.ts and a/b', ['src/**/*.ts', 'a/b']],
    ['**/etc/hosts is here**', '/etc/hosts is here', ['/etc/hosts is here']],
    ['调用API**get user**接口', '调用APIget user接口', ['get user']],
    ['*note*: w*h*d', 'note: w*h*d', ['note']],
    ['__Note:__ and __bold__', 'Note: and bold', ['Note:', 'bold']],
    ['\\[x\\] done, \\[1\\] *e*', '[x] done, [1] e', ['e']],
    ['\\[my-link\\](x) *e*', '[my-link](x) e', ['e']],
    ['*a* is .NET, *.NET* too', 'a is .NET, .NET too', ['a', '.NET']],
  ])('treats %j as ordinary text', (markdown, text, marked) => {
    const formatted = formatMarkdown(markdown);
    expect(formatted.text).toBe(text);
    expect(formatted.spans.map(({ start, length }) => text.slice(start, start + length))).toEqual(marked);
  });

  it('restores exactly what it hid, in any text', () => {
    const pieces = fc.constantFrom(
      '$',
      '$$',
      '\\(',
      '\\)',
      '\\[',
      '\\]',
      '*',
      '**',
      '`',
      '```\n',
      '\n',
      '\n\n',
      '> ',
      '/',
      '.a',
      'b',
      ' ',
      '|',
      '__',
      'C:\\',
      '\ufdd0',
      '好',
    );
    check(
      fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
        const markdown = parts.join('');
        const hidden = hideLiterals(markdown);
        expect(hidden).toHaveLength(markdown.length);
        if (!markdown.includes('\ufdd0')) expect(showLiterals(hidden)).toBe(markdown);
        else expect(hidden).toBe(markdown);
      }),
      20_000,
    );
  });

  // A search that started over at each sign would take minutes for such a text, and the runner would end it.
  it.each([
    ...[
      '$a ',
      '$a b$ ',
      '\\[a',
      '`*',
      '**/',
      '* **/',
      '*/ ',
      'a*b ',
      '__a',
      'C:\\',
      '$a\nb',
      '`$',
      '*.a *a*好',
    ],
  ])('reads half a million characters of %j without starting over', (piece) => {
    const text = piece.repeat(500_000 / piece.length);
    expect(hideLiterals(text)).toHaveLength(text.length);
  });
});

// After reports on lmstudio-bug-tracker, KiroCrew, marked, qwen-code, DeepSeek-Reasonix and t3code.
describe('emphasis beside Chinese, Japanese and Korean characters', () => {
  it.each([
    ['**注意：**请不要删除文件。', '注意：'],
    ['**“重要”**的是备份。', '“重要”'],
    ['이것은 **중요(필수)**입니다.', '중요(필수)'],
    ['**マークダウン（Markdown）**は軽量', 'マークダウン（Markdown）'],
    ['**历经10年发展，**a', '历经10年发展，'],
    ['**不变。**源码', '不变。'],
    ['*这是斜体文字（带括号）。*这句子继续。', '这是斜体文字（带括号）。'],
    ['~~删除的文字（带括号）。~~这个句子', '删除的文字（带括号）。'],
    ['使用**`code`**命令', 'code'],
    ['这是**重要**的', '重要'],
    ['이름**(별명)**은', '(별명)'],
    ['**「引用」**と書く', '「引用」'],
  ])('finds the emphasis in %j', (markdown, marked) => {
    const { text, spans } = formatMarkdown(markdown);
    expect(text).not.toMatch(/[*~]/);
    expect(spans.map(({ start, length }) => text.slice(start, start + length))).toEqual([marked]);
    for (const shown of shownTexts(markdown)) expect(shown).toBe(text);
  });
});
