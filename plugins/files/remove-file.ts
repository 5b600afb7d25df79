import { findEntry, pathAt } from './descriptor.ts';
import { codeOf, fromSystemError } from './file-problem.ts';
import { type OpenWorkspace, openPath, segmentsOf } from './open-path.ts';

/** Removes a name that isn't a folder, never what a link leads to, and then its folder if it has become empty. */
export async function removeFile(
  place: OpenWorkspace,
  path: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const segments = segmentsOf(path, place.roots);
  const [name = '', ...above] = segments.toReversed();
  try {
    await using folder = await openPath(place, above.toReversed(), signal);
    if ((await findEntry(folder, name)) === undefined) return;
    await folder.handle.disk.unlink(pathAt(folder.handle, name));
  } catch (error) {
    const problem = fromSystemError(error, path);
    if (codeOf(problem) === 'ENOENT') return;
    throw problem;
  }
  const [own = '', ...parents] = above;
  if (parents.length === 0) return;
  await using parent = await openPath(place, parents.toReversed(), signal);
  // Other files may be in it.
  await parent.handle.disk.rmdir(pathAt(parent.handle, own)).catch(() => undefined);
}
