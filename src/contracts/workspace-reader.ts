import type { Authority } from './outcome.ts';
import type { ToolRun } from './tool.ts';

/** Reads workspace files for other tools, with the same rules and limits as the file tools. */
export interface WorkspaceReader {
  /** The least trusted authority that may cause a file to be read. */
  readonly authority: Authority;
  /**
   * Reads a regular file inside the workspace, never through a link. Throws ParleyError `tool_failed`, with a message for
   * the model, for a file of more than `maxBytes` or outside the workspace.
   */
  read(
    workspace: string,
    path: string,
    options: {
      readonly maxBytes: number;
      readonly signal: AbortSignal;
      /** The run's, which are readable in the folder `inbox`. */
      readonly receivedFiles?: ToolRun['receivedFiles'];
    },
  ): Promise<Buffer>;
}

/**
 * Writes files that show people what Parley does. Agents write in the same folders, so nothing there is trusted: no link
 * is followed, and only plain files are replaced. `refused`: something else has the name, or the place isn't one for
 * files; trying again won't help. Throws ParleyError `tool_failed` if the disk fails or is full.
 */
export interface WorkspaceWriter {
  /** Puts a whole file in place in one step, creating the workspace and folders as needed. */
  write(
    workspace: string,
    path: string,
    options: { readonly bytes: Uint8Array; readonly signal: AbortSignal },
  ): Promise<'written' | 'refused'>;
  /** Removes a file, and its folder if that is empty and isn't at the top. A missing file counts as removed. */
  remove(
    workspace: string,
    path: string,
    options: { readonly signal: AbortSignal },
  ): Promise<'removed' | 'refused'>;
  /** Returns the names in a folder, at most `most` of them; none if there is no such folder. */
  list(
    workspace: string,
    path: string,
    options: { readonly most: number; readonly signal: AbortSignal },
  ): Promise<readonly string[]>;
}

/** File calls on disks that may stop answering, such as network drives; a disk is named by its workspace. */
export interface DiskCalls {
  /**
   * Makes the call when it is its turn. Throws ParleyError `tool_failed` when the disk doesn't answer in time, or
   * immediately if too many calls are already unanswered. The call itself continues; its result goes to `dropLate`.
   */
  run<T>(disk: string, call: () => Promise<T>, dropLate?: (result: T) => void): Promise<T>;
  /** Makes a call that has to be made eventually, such as closing a file. The caller waits as for any other. */
  finish(disk: string, call: () => Promise<void>): Promise<void>;
}
