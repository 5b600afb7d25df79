import type { Authority } from './outcome.ts';

/** Reads files of workspaces for other tools, in the way and with the bounds of the file tools. */
export interface WorkspaceReader {
  /** The least trusted authority that may cause a file to be read. */
  readonly authority: Authority;
  /**
   * Reads a regular file inside the workspace, never through a link. Throws ParleyError `tool_failed`, for the model,
   * for one of more than `maxBytes` and for what is outside.
   */
  read(
    workspace: string,
    path: string,
    options: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<Buffer>;
}
