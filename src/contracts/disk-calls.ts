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
