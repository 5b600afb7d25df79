import type { SettleCall } from '#contracts/tool.ts';

/** For plugins whose tools never wait. */
export const nothingToSettle: SettleCall = async () => 'unknown-call';
