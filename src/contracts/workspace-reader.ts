import type { Authority } from './outcome.ts';

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
    options: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<Buffer>;
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
