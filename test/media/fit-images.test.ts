import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readImageHead } from '../../src/agent/fit-image.ts';
import { newMediaName } from '../../src/inbound/media.ts';
import { createImageFitter, fitImagesOf, maxOldImageSide } from '../../src/media/fit-images.ts';
import { createMediaPool, type RunMediaJob } from '../../src/media/media-pool.ts';
import { imagesIn } from '../../src/runs/framing.ts';
import { aPng } from '../support/one-pixel.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { photoOf } from './some-files.ts';

const folder = sharedFolder();
const pool = createMediaPool();
const widthOf = (base64 = '') => readImageHead(Buffer.from(base64, 'base64'))?.width;

it('makes the large images of a tool smaller and leaves the others', async () => {
  const large = (await photoOf(3000, 2000)).toString('base64');
  const images = [aPng, { mimeType: 'image/jpeg', base64: large }, { mimeType: 'image/png', base64: 'AAAA' }];
  const { signal } = new AbortController();
  const output = await fitImagesOf(createImageFitter(pool), { text: 'a', images }, signal);
  expect(output.images?.map(({ base64 }) => widthOf(base64))).toEqual([1, 1568, undefined]);
  expect(output.images?.[2]).toEqual(images[2]);
});

it('makes the images of an earlier version smaller once, and only those of more than 2,000 pixels', async () => {
  let jobs = 0;
  const run: RunMediaJob = (job, signal) => {
    jobs += 1;
    return pool(job, signal);
  };
  const load = imagesIn(folder(), createImageFitter(run, { maxSide: maxOldImageSide }));
  await mkdir(folder(), { recursive: true });
  const shown = async (bytes: Buffer) => {
    const name = newMediaName('item');
    await writeFile(join(folder(), name), bytes);
    const images = [await load(name), await load(name)];
    return images.map((image) => (typeof image === 'object' ? widthOf(image.base64) : image));
  };
  expect(await shown(await photoOf(4000, 3000))).toEqual([1568, 1568]);
  expect(await shown(await photoOf(2000, 900))).toEqual([2000, 2000]);
  expect(await shown(Buffer.from('no image'))).toEqual(['unfit', 'unfit']);
  expect(jobs).toBe(1);
});
