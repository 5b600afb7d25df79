import decodeQR from 'qr/decode.js';
import { expect, it } from 'vitest';
import { renderQrCode } from '../../src/cli/qr-code.ts';
import { describeLinks } from '../../src/cli/sign-in.ts';

const cells: Readonly<Record<string, readonly [boolean, boolean]>> = {
  ' ': [false, false],
  '▀': [true, false],
  '▄': [false, true],
  '█': [true, true],
};

const blackOnWhite = '\u001b[30;107m';
const reset = '\u001b[0m';
const withoutColours = (line: string) => line.replace(blackOnWhite, '').replace(reset, '');

/** Reads the code from the rows of a screen as a camera would: eight pixels per module. */
function scan(screen: string): string {
  const scale = 8;
  const rows = screen
    .trimEnd()
    .split('\n')
    .map((line) => [...withoutColours(line)].map((cell) => cells[cell] ?? [false, false]));
  const modules = rows.flatMap((row) => [row.map(([upper]) => upper), row.map(([, lower]) => lower)]);
  const width = (modules[0]?.length ?? 0) * scale;
  const height = modules.length * scale;
  const data = new Uint8Array(width * height * 4).fill(255);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      if (modules[Math.floor(y / scale)]?.[Math.floor(x / scale)])
        data.fill(0, (y * width + x) * 4, (y * width + x) * 4 + 3);
  return decodeQR({ width, height, data });
}

const link = `sgnl://linkdevice?uuid=0f8fad5b-d9cb-469f-a165-70867728950e&pub_key=${'BaZ%2B'.repeat(12)}`;

it.each(['https://example.org', link])('shows a code that can be scanned: %s', (uri) => {
  const screen = renderQrCode(uri);
  expect(scan(screen)).toBe(uri);
  // Dark on light, whatever the terminal's colors are.
  for (const line of screen.trimEnd().split('\n')) {
    expect(line.startsWith(blackOnWhite)).toBe(true);
    expect(line.endsWith(reset)).toBe(true);
  }
});

it('fits the longest link of a network into 80 columns', () => {
  const [line = ''] = renderQrCode(link).split('\n');
  expect([...withoutColours(line)].length).toBeLessThan(80);
});

it('shows a code of the sign-in link for a phone on a screen', () => {
  const phoneUrl = 'http://192.168.1.7:7411/sign-in?ticket=q7Zr2mXk9vTb4NwLs8Jd1HfG';
  const links = { url: 'http://127.0.0.1:7411/sign-in?ticket=q7Zr2mXk9vTb4NwLs8Jd1HfG', phoneUrl };
  const [, shown = ''] = describeLinks(links, { hasScreen: true, host: '0.0.0.0' }).split(
    'On a phone on the same network:\n\n',
  );
  expect(scan(shown.slice(0, shown.indexOf(phoneUrl)).trimEnd())).toBe(phoneUrl);
  expect(describeLinks(links, { hasScreen: false, host: '0.0.0.0' })).toContain(
    `same network:\n\n  ${phoneUrl}\n`,
  );
  // In a container, Parley doesn't know how others reach it, whatever address it listens on.
  const { url } = links;
  expect(describeLinks({ url }, { hasScreen: true, host: '0.0.0.0' })).not.toContain('PARLEY_HOST');
});
