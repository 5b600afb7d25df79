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
