import type { FSWatcher } from 'node:fs';
import { Inject, Injectable } from '@nestjs/common';
import type { OpenFolder } from './open-folder.js';

/** Injection token of `fs.watch`. */
export const WATCH = Symbol('WATCH');

export type Watch = (folder: string, options: { readonly persistent: boolean }) => FSWatcher;

/** More folders than this are not watched; they are looked at regularly instead. */
const WATCHES = 50_000;

interface Watched {
  readonly watcher: FSWatcher;
  counts: (name: string) => boolean;
  /** The map it stands in. */
  home: Map<string, Watched>;
}
export interface Listener {
  /** A name in a folder changed; '' where the system does not say which. */
  readonly changed: (scope: string, name: string) => void;
  /** A folder cannot be watched, or no longer. */
  readonly failed: (error: unknown) => void;
}
/** One scan of a scope, which comes by the folders that are to be watched. */
export interface Pass {
  /** To be called before the folder is read; only names that count in it are told of. */
  readonly enter: (folder: OpenFolder, counts: (name: string) => boolean) => void;
  /** What a whole scan did not come by is no longer watched. */
  readonly finish: (isWhole: boolean) => void;
}

/** Watches folders as what they are and not as names, each from before it was first read. */
@Injectable()
export class FolderWatch {
  private readonly scopes = new Map<string, Map<string, Watched>>();
  private size = 0;

  constructor(@Inject(WATCH) private readonly watchFolder: Watch) {}

  begin(scope: string, listener: Listener): Pass {
    const before = this.scopes.get(scope) ?? new Map<string, Watched>();
    const now = new Map<string, Watched>();
    this.scopes.set(scope, now);
    return {
      enter: (folder, counts) => {
        const key = `${folder.identity} ${folder.path}`;
        const known = before.get(key) ?? now.get(key);
        before.delete(key);
        if (known === undefined) this.#watch({ scope, key, now, listener }, folder, counts);
        else now.set(key, Object.assign(known, { counts, home: now }));
      },
      finish: (isWhole) => {
        for (const [key, watched] of before) {
          if (isWhole) this.#end(watched);
          else now.set(key, Object.assign(watched, { home: now }));
        }
        if (now.size === 0) this.scopes.delete(scope);
      },
    };
  }

  close(): void {
    for (const watched of this.scopes.values()) for (const one of watched.values()) this.#end(one);
    this.scopes.clear();
  }

  #watch(
    {
      scope,
      key,
      now,
      listener,
    }: { readonly scope: string; readonly key: string; readonly now: Map<string, Watched>; readonly listener: Listener },
    folder: OpenFolder,
    counts: (name: string) => boolean,
  ): void {
    try {
      if (this.size >= WATCHES) throw new Error(`more than ${WATCHES} folders would have to be watched`);
      const watched: Watched = { watcher: this.watchFolder(folder.held, { persistent: false }), counts, home: now };
      this.size += 1;
      now.set(key, watched);
      watched.watcher.on('change', (_type, name) => {
        const changed = typeof name === 'string' ? name : '';
        if (changed === '' || watched.counts(changed)) listener.changed(scope, changed);
      });
      watched.watcher.on('error', (error) => {
        if (watched.home.delete(key)) this.#end(watched);
        listener.failed(error);
      });
    } catch (error) {
      listener.failed(error);
    }
  }

  #end({ watcher }: Watched): void {
    this.size -= 1;
    watcher.close();
  }
}
