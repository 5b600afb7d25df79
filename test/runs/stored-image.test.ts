import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { mediaFolder } from '../../src/config/media-folder.ts';
import { newMediaName } from '../../src/inbound/media.ts';
import { createImageFitter } from '../../src/media/fit-images.ts';
import { createMediaPool } from '../../src/media/media-pool.ts';
import { imagesIn } from '../../src/runs/framing.ts';
import { aPng } from '../support/one-pixel.ts';
import { aFolder } from '../support/own-folder.ts';

it('shows an image of a moved data folder, and none from outside its media folder', async () => {
  const folder = aFolder();
  const [before, after] = [join(folder, 'before'), join(folder, 'after')];
  mkdirSync(mediaFolder(before), { recursive: true });
  const name = newMediaName(crypto.randomUUID());
  const png = Buffer.from(aPng.base64, 'base64');
  for (const path of [join(mediaFolder(before), name), join(before, name)]) writeFileSync(path, png);
  renameSync(before, after);

  const load = imagesIn(mediaFolder(after), createImageFitter(createMediaPool()));
  expect(await load(name)).toMatchObject({ mimeType: 'image/png' });
  symlinkSync(after, join(mediaFolder(after), 'up'));
  for (const path of [`../${name}`, join(after, name), `up/${name}`, `./${name}`, '.', ''])
    expect(await load(path)).toBeUndefined();
});
