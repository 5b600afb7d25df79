export declare const releases: readonly { readonly version: string; readonly commit: string }[];
