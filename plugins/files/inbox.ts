/**
 * Shows the files of a conversation's messages in the folder `inbox` of the workspace, read-only and without a copy.
 * Only the run's own session is asked for, and only names that it returns are opened, in the media folder.
 */
import { basename, dirname } from 'node:path';
import { hasCode } from '#contracts/errors.ts';
import type { ReceivedFile, ToolRun } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import { fileProblem } from './file-problem.ts';
import type { FolderListing, WalkedFile, WalkOptions } from './folder-walk.ts';
import { openWorkspace, type ReadOptions, type WorkspaceFiles } from './workspace-files.ts';

const folderName = 'inbox';

/** Opens a run's workspace with the files of its messages in it. */
export async function openRunFiles(
  { workspace, receivedFiles }: Pick<ToolRun, 'workspace' | 'receivedFiles'>,
  disks: DiskCalls,
): Promise<WorkspaceFiles> {
  const files = await openWorkspace(workspace, disks);
  if (receivedFiles === undefined) return files;
  let asked: Promise<readonly ReceivedFile[]> | undefined;
  const received = () => {
    asked ??= receivedFiles();
    return asked;
  };
  return withInbox(files, { received, disks });
}

type InboxDeps = { received(): Promise<readonly ReceivedFile[]>; readonly disks: DiskCalls };

function withInbox(files: WorkspaceFiles, deps: InboxDeps): WorkspaceFiles {
  const find = async (path: string): Promise<ReceivedFile | undefined> => {
    const [folder, name, ...rest] = files.segmentsOf(path);
    if (folder !== folderName || name === undefined || rest.length > 0) return undefined;
    return (await deps.received()).find((file) => file.name === name);
  };
  const refuse = async (path: string) => {
    if ((await find(path)) !== undefined)
      throw fileProblem(
        `${path} came with a message and can't be changed. Write to a path outside ${folderName}/.`,
      );
  };
  return {
    segmentsOf: files.segmentsOf,
    read: async (path, options) => {
      const file = await find(path);
      return file === undefined
        ? files.read(path, options)
        : readReceived(file, path, { ...options, ...deps });
    },
    write: async (path, bytes, options) => {
      await refuse(path);
      return files.write(path, bytes, options);
    },
    remove: async (path, options) => {
      await refuse(path);
      return files.remove(path, options);
    },
    list: async (path, options) => {
      const [folder, ...rest] = files.segmentsOf(path);
      if (rest.length > 0 || (folder ?? folderName) !== folderName) return files.list(path, options);
      return listWith(await deps.received(), files, { path, options, isInbox: folder === folderName });
    },
    walk: (path, options) => walkWith(files, { path, options, find, deps }),
    [Symbol.asyncDispose]: () => files[Symbol.asyncDispose](),
  };
}

async function readReceived(
  { path: stored, sizeBytes }: ReceivedFile,
  path: string,
  { maxBytes, signal, disks, advice = 'Use grep to find what you need.' }: ReadOptions & InboxDeps,
) {
  if (sizeBytes > maxBytes)
    throw fileProblem(`${path} has ${sizeBytes} bytes; the limit is ${maxBytes}. ${advice}`);
  await using media = await openWorkspace(dirname(stored), disks);
  return await media.read(basename(stored), { maxBytes, signal });
}

type ListRequest = {
  readonly path: string;
  readonly options: Parameters<WorkspaceFiles['list']>[1];
  readonly isInbox: boolean;
};

async function listWith(
  received: readonly ReceivedFile[],
  files: WorkspaceFiles,
  { path, options, isInbox }: ListRequest,
): Promise<FolderListing> {
  const none = { entries: [], isCut: false };
  const listed = await files.list(path, options).catch((error: unknown) => {
    // The workspace needs no such folder of its own.
    if (isInbox && received.length > 0 && hasCode(error, 'tool_failed')) return none;
    throw error;
  });
  const names = isInbox ? received.map(({ name }) => name) : received.length > 0 ? [folderName] : [];
  const known = new Set(listed.entries.map(({ name }) => name));
  const kind = isInbox ? ('file' as const) : ('folder' as const);
  const added = names.filter((name) => !known.has(name)).map((name) => ({ name, kind }));
  const entries = [...listed.entries, ...added].sort((a, b) => (a.name < b.name ? -1 : 1));
  const isCut = listed.isCut || entries.length > options.maxEntries;
  return { entries: entries.slice(0, options.maxEntries), isCut };
}

type Walk = {
  readonly path: string;
  readonly options: WalkOptions;
  readonly deps: InboxDeps;
  find(path: string): Promise<ReceivedFile | undefined>;
};

async function* walkWith(
  files: WorkspaceFiles,
  { path, options, find, deps }: Walk,
): AsyncGenerator<WalkedFile> {
  const one = await find(path);
  if (one !== undefined) return yield* open(one, { options, deps, pathBelow: one.name });
  const [folder, ...rest] = files.segmentsOf(path);
  const isInbox = folder === folderName && rest.length === 0;
  const received = isInbox || folder === undefined ? await deps.received() : [];
  try {
    yield* files.walk(path, options);
  } catch (error) {
    if (!isInbox || received.length === 0 || !hasCode(error, 'tool_failed')) throw error;
  }
  for (const file of received) {
    const pathBelow = isInbox ? file.name : `${folderName}/${file.name}`;
    yield* open(file, { options, deps, pathBelow });
  }
}

async function* open(
  { name, path }: ReceivedFile,
  {
    options,
    deps,
    pathBelow,
  }: { readonly options: WalkOptions; readonly deps: InboxDeps; readonly pathBelow: string },
): AsyncGenerator<WalkedFile> {
  await using media = await openWorkspace(dirname(path), deps.disks);
  for await (const file of media.walk(basename(path), options))
    yield { ...file, path: `${folderName}/${name}`, pathBelow };
}
