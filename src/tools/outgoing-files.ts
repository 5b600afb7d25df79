/**
 * Copies files of a workspace into the media folder before the part that sends them is stored, so that later changes to
 * a file don't affect what is sent. Copies that no part names any longer are removed with old media.
 */
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import type { OutboundFile } from '#contracts/outbound.ts';
import { lowestAuthority } from '#contracts/outcome.ts';
import type { ToolRun } from '#contracts/tool.ts';
import type { WorkspaceReader } from '#contracts/workspace-reader.ts';
import { hasRoom, newOutgoingName } from '../inbound/media.ts';
import { isOggOpus, sniffType } from '../media/sniff.ts';
import type { ByteBudget } from '../outbox/byte-budget.ts';

export type OutgoingFilesDeps = {
  readonly mediaDir: string;
  /** Largest file that may be sent, bytes; a network's limit may be lower. */
  readonly maxFileBytes: number;
  /** Limits the files that are in memory while they are copied, over all conversations. */
  readonly copies: ByteBudget;
  /** Returns the reader for a run; undefined if the run may not read files. */
  readerFor(run: ToolRun): WorkspaceReader | undefined;
};

/** A copy in the media folder. */
export type OutgoingFile = OutboundFile & { readonly sizeBytes: number; readonly isOggOpus: boolean };

/**
 * Copies the files to send. Throws ParleyError `tool_failed` for the first one that can't be sent, and then sends none.
 */
export async function copyOutgoing(
  { mediaDir, maxFileBytes, copies, readerFor }: OutgoingFilesDeps,
  input: {
    readonly run: ToolRun;
    readonly paths: readonly string[];
    readonly maxBytes: number;
    readonly signal: AbortSignal;
  },
): Promise<readonly OutgoingFile[]> {
  const { run, paths, maxBytes, signal } = input;
  const reader = readerFor(run);
  if (!reader)
    throw new ParleyError('tool_failed', "The workspace's files can't be read here, so none are sent.");
  if (lowestAuthority(run.authority, reader.authority) !== reader.authority)
    throw new ParleyError('tool_failed', 'The person you answer may not have files read, so none are sent.');
  await mkdir(mediaDir, { recursive: true, mode: 0o700 });
  const { receivedFiles } = run;
  const limits = {
    maxBytes: Math.min(maxBytes, maxFileBytes),
    signal,
    ...(receivedFiles && { receivedFiles }),
  };
  const files: OutgoingFile[] = [];
  try {
    for (const path of paths) {
      const release = await copies.take(limits.maxBytes, signal);
      if (!release) throw new ParleyError('tool_failed', 'The files were not sent: the call was stopped.');
      try {
        const bytes = await reader.read(run.workspace, path, limits);
        if (bytes.length === 0) throw new ParleyError('tool_failed', `${path} is empty.`);
        const known = { mimeType: sniffType(bytes), sizeBytes: bytes.length, isOggOpus: isOggOpus(bytes) };
        files.push({ path: await keep(mediaDir, bytes), name: basename(path), ...known });
      } finally {
        release();
      }
    }
    return files;
  } catch (error) {
    for (const { path } of files) await rm(join(mediaDir, path), { force: true });
    throw error;
  }
}

/** Stores the file on disk, either completely or not at all. Returns its name in the media folder. */
async function keep(mediaDir: string, bytes: Buffer): Promise<string> {
  if (!(await hasRoom(mediaDir, bytes.length)))
    throw new ParleyError('tool_failed', 'The disk is too full to send files.');
  const name = newOutgoingName();
  const whole = join(mediaDir, name);
  const partial = `${whole}.part`;
  try {
    await using file = await open(partial, 'wx', 0o600);
    await file.writeFile(bytes);
    await file.datasync();
    await rename(partial, whole);
    return name;
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}
