import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { newOutgoingName } from '../../src/inbound/media.ts';
import { axeViolations } from './axe.ts';
import { test } from './page-test.ts';
import { xssStrings } from './xss-strings.ts';

const hostile = '<script>parent.hacked = top.hacked = window.hacked = 1; fetch("/api/status")</script>';
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">${hostile}</svg>`;

/** `send` delivers a file as the outbox does, and stores it, in this order; it returns the message's id. */
const it = test.extend('send', ({ gateway }) => async (bytes: string | Buffer, sent: Sent = {}) => {
  const { name = 'a.bin', mimeType = 'text/plain', text = '' } = sent;
  const [key, stored] = [`part-${crypto.randomUUID()}`, newOutgoingName()];
  const path = join(gateway.mediaDir, stored);
  await writeFile(path, bytes);
  const media = { kind: 'media', mimeType, name } as const;
  gateway.files = new Map(gateway.files).set(key, { ...media, path: stored, laneKey: 'lane' });
  await gateway.deliver({ ...media, path, ...(text && { caption: { text, spans: [] } }) }, key);
  const file = { name, mimeType, stored, sizeBytes: Buffer.byteLength(bytes) };
  gateway.session.say(gateway.route, { messageId: key, text, file });
  return { key, path };
});

const shown = (page: Page, key: string) => page.locator(`article.agent[data-id="${key}"]`);
const widthOf = (page: Page, key: string) =>
  shown(page, key)
    .locator('img')
    .evaluate((image) => (image as unknown as { readonly naturalWidth: number }).naturalWidth);

describe('files in the page', () => {
  it.for([
    ['a desktop', { width: 1280, height: 800 }],
    ['a phone', { width: 360, height: 640 }],
  ] as const)(
    'shows an image and a document on %s, even after a reload',
    async ([, viewport], { page, send, signIn }) => {
      await page.setViewportSize(viewport);
      await signIn();
      const image = await send(aPng(1600, 1200), {
        ...{ name: 'a-long-name-of-a-picture-'.repeat(8), mimeType: 'image/png', text: 'The picture' },
      });
      const document = await send('%PDF-1.7', { name: 'Report 2026.pdf', mimeType: 'application/pdf' });
      for (const isAgain of [false, true]) {
        if (isAgain) await page.reload();
        const picture = shown(page, image.key).getByRole('img');
        await picture.waitFor();
        await expect.poll(() => widthOf(page, image.key)).toBe(1600);
        const box = await picture.boundingBox();
        expect(box?.width).toBeLessThanOrEqual(viewport.width - 32);
        expect(box?.height).toBeLessThanOrEqual(viewport.height * 0.6 + 1);
        expect(await shown(page, image.key).textContent()).toContain('The picture');
        const link = shown(page, document.key).getByRole('link', { name: 'File Report 2026.pdf, 8 bytes' });
        const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
        expect(download.suggestedFilename()).toBe('Report 2026.pdf');
        expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      }
      expect(await axeViolations(page)).toEqual([]);
    },
  );

  it('keeps the newest message in view when an image above it arrives late', async ({
    gateway,
    page,
    send,
    signIn,
  }) => {
    await page.setViewportSize({ width: 800, height: 400 });
    await signIn();
    gateway.session.say(gateway.route, { text: 'a long message '.repeat(300) });
    // Not every browser anchors what is in view.
    await page.evaluate("document.getElementById('scroll').style.overflowAnchor = 'none'");
    const [asked, arriving] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route('**/api/file*', async (route) => {
      asked.resolve();
      await arriving.promise;
      await route.continue();
    });
    const { key } = await send(aPng(800, 600), { name: 'late.png', mimeType: 'image/png' });
    gateway.session.say(gateway.route, { text: 'below the image' });
    await page.getByText('below the image').last().waitFor();
    await asked.promise;
    // The page also scrolls whenever it shows anything new.
    await page.evaluate('for (let id = 0; id < 10_000; id += 1) clearTimeout(id)');
    arriving.resolve();
    await expect.poll(() => widthOf(page, key)).toBe(800);
    const below = () =>
      page.locator('#scroll').evaluate((element) => {
        const { scrollHeight, scrollTop, clientHeight } = element as unknown as ScrollBox;
        return scrollHeight - scrollTop - clientHeight;
      });
    await expect.poll(below).toBeLessThan(2);
  });

  it('executes nothing of a file, whatever it claims to be, and no name that looks like markup', async ({
    gateway,
    page,
    send,
    signIn,
  }) => {
    await signIn();
    const files = [
      { bytes: svg, name: 'a.svg', mimeType: 'image/svg+xml' },
      { bytes: svg, name: 'a.png', mimeType: 'image/png' },
      { bytes: `<!doctype html>${hostile}`, name: 'a.html', mimeType: 'text/html' },
      { bytes: `<!doctype html>${hostile}`, name: 'b.gif', mimeType: 'image/gif' },
    ];
    const sent = await Promise.all(files.map(({ bytes, ...named }) => send(bytes, named)));
    for (const name of xssStrings) await send('x', { name });
    const last = await send('x', { name: 'the last one' });
    await shown(page, last.key).waitFor();
    expect(await page.locator('article script, article [onerror], article [onload]').count()).toBe(0);
    for (const { key } of sent) {
      const opened = await page.context().newPage();
      const requests: string[] = [];
      opened.on('request', (request) => requests.push(request.url()));
      const address = `${gateway.url}/api/file?message=${key}`;
      // A download rejects the navigation.
      await opened.goto(address).catch(() => undefined);
      expect(requests).toEqual([address]);
      expect(await opened.evaluate('typeof hacked')).toBe('undefined');
      await opened.close();
    }
    expect(await page.evaluate('typeof hacked')).toBe('undefined');
  });

  it('offers an image that cannot be shown as a file, and says that a file is gone', async ({
    gateway,
    page,
    send,
    signIn,
  }) => {
    const broken = await send('GIF8', { name: 'broken.png', mimeType: 'image/png' });
    const gone = await send(aPng(9, 9), { name: 'gone.png', mimeType: 'image/png' });
    await rm(gone.path);
    const file = { name: 'old.txt', mimeType: 'text/plain', stored: newOutgoingName() };
    const { messageId } = gateway.session.say(gateway.route, { text: '', file });
    await signIn();
    await shown(page, broken.key).getByRole('link', { name: 'File broken.png, 4 bytes' }).waitFor();
    await shown(page, messageId).getByText('no longer kept').waitFor();
    expect(await shown(page, messageId).getByRole('link').count()).toBe(0);
    await shown(page, gone.key).getByRole('link', { name: 'File gone.png' }).click();
    const [opened] = await Promise.all([
      page.context().waitForEvent('page'),
      shown(page, gone.key).getByRole('link').click(),
    ]);
    await opened.getByText('This file is no longer kept.').waitFor();
  });
});

type Sent = { readonly name?: string; readonly mimeType?: string; readonly text?: string };
type ScrollBox = { readonly scrollHeight: number; readonly scrollTop: number; readonly clientHeight: number };

/** Returns a white image of this size. */
function aPng(width: number, height: number): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([1, 0, 0, 0, 0], 8);
  const row = Buffer.alloc(1 + Math.ceil(width / 8), 0xff);
  row[0] = 0;
  const rows = Buffer.concat(Array.from({ length: height }, () => row));
  const chunks = [chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...chunks]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [size, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([size, body, check]);
}
