/**
 * Decides whether a folder is the backup that its manifest describes: nothing in it leads elsewhere, every file is
 * listed, and every listed file is as it was written. A backup may have been on a stick or a server in the meantime.
 */
import { dirname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { describeFile, type FolderContent, readContent } from './durable-files.ts';
import { isOwnEntry } from './folder-entries.ts';
import { type FoundBackup, type Manifest, manifestName } from './manifest.ts';

/** Throws ParleyError `invalid_input` naming the first file that doesn't belong there, is missing or was changed. */
export async function verifyBackup({ path, manifest }: FoundBackup): Promise<void> {
  refuseUnsafeNames(path, manifest);
  if (manifest.kind === 'replaced') return;
  const { files, links } = await readContent(path);
  const found = { files: new Set([...files].filter((file) => file !== manifestName)), links };
  await refuseStrangers(path, { manifest, found });
  for (const { path: file, bytes, sha256 } of manifest.files) {
    const copy = found.files.has(file)
      ? await describeFile(join(path, file), path).catch(() => undefined)
      : undefined;
    if (copy?.bytes !== bytes || copy.sha256 !== sha256)
      throw distrust(`${join(path, file)} ${copy ? 'was changed' : 'is missing'}`);
  }
}

/** Refuses names that lead out of the backup, or that a restore would put in the place of Parley's own files. */
function refuseUnsafeNames(path: string, { entries, files, links = [], settings, database }: Manifest): void {
  const paths = [...files, ...links].map((one) => one.path).concat(settings.map(({ file }) => file));
  const outside = [...paths, database.file].find((name) => !isInside(name));
  if (outside !== undefined)
    throw distrust(`${join(path, manifestName)} names ${outside}, which is outside the backup`);
  const wrong = entries.find((name) => !isInside(name) || /[\\/]/.test(name) || isOwnEntry(name));
  if (wrong !== undefined)
    throw distrust(`${join(path, manifestName)} names ${wrong}, which is never in a backup`);
}

/** Accepts only the plain form of a path below the folder: `media/2026/picture`. */
function isInside(name: string): boolean {
  return (
    name !== '' &&
    name !== '.' &&
    !isAbsolute(name) &&
    normalize(name) === name &&
    !/^\.\.(?:\/|$)/.test(name)
  );
}

async function refuseStrangers(
  path: string,
  { manifest, found }: { readonly manifest: Manifest; readonly found: FolderContent },
): Promise<void> {
  const listed = new Set(manifest.files.map((file) => file.path));
  const stranger = [...found.files].find((file) => !listed.has(file));
  if (stranger !== undefined) throw distrust(`${join(path, stranger)} isn't in its list of files`);
  // Older backups have no list of links; those that stay inside are harmless.
  const { links } = manifest;
  const known = links && new Map(links.map((link) => [link.path, link.target]));
  for (const [link, target] of found.links) {
    if (known === undefined ? !leadsOut(path, link, target) : known.get(link) === target) continue;
    const problem = known === undefined ? 'leads out of the backup' : "isn't in its list of links";
    throw distrust(`${join(path, link)}, a link to ${target}, ${problem}`);
  }
}

function leadsOut(path: string, link: string, target: string): boolean {
  const place = relative(path, resolve(dirname(join(path, link)), target));
  return isAbsolute(target) || !isInside(place);
}

function distrust(what: string): ParleyError {
  return new ParleyError('invalid_input', `${what}: this backup can't be trusted. Nothing was replaced.`);
}
