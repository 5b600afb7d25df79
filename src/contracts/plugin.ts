import type { z } from 'zod';
import type { DiskCalls } from './disk-calls.ts';
import type { Log } from './log.ts';
import type { SettleCall, ToolFactory } from './tool.ts';
import type { WorkspaceReader } from './workspace-reader.ts';

/** The export `plugin` of a plugin folder's `index.ts`. */
export interface PluginDefinition<Config = unknown> {
  readonly id: string;
  readonly configSchema: z.ZodType<Config>;
  /** Registers what the plugin brings; returns a disposer. */
  setup(api: PluginApi, config: Config): Disposer;
}

/** Releases what a plugin opened; called once, when Parley stops. */
export type Disposer = () => void | Promise<void>;

/** The plugin API. It grows with the plugins that need it. */
export interface PluginApi {
  readonly log: Log;
  readonly tools: {
    /**
     * Brings one tool. The name is declared here, before any run asks the factory, so that two plugins
     * that bring the same tool are noticed at the start. The factory's tools carry that name.
     */
    register(name: string, factory: ToolFactory): void;
  };
  /** Makes the file calls on workspaces, so that a disk that is gone holds up nothing else. */
  readonly disks: DiskCalls;
  /** Lets the gateway's own tools read files of workspaces. One plugin may, in its setup. */
  readonly workspaces: { serve(reader: WorkspaceReader): void };
  /** Answers a call of one of its tools that is parked, also one from before a restart. */
  readonly settle: SettleCall;
}
