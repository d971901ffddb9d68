// Command goka_deferred counts letters that another goroutine takes to the post: a message counts when its letter is there.
package main

import (
	"fmt"
	"sync"
	"time"

	wa "wallarooapi"
	"wallarooapi/goka"
	"wallarooapi/goka/codec"
)

// post is what has arrived.
var post struct {
	sync.Mutex
	letters []string
}

// write counts a letter of a user, says what the post has, and lets a goroutine take the letter there.
func write(ctx goka.Context, text any) {
	letters, _ := ctx.Value().(int64)
	ctx.SetValue(letters + 1)
	post.Lock()
	ctx.Emit("receipts", ctx.Key(), fmt.Sprintf("%s comes after %d", text, len(post.letters)))
	post.Unlock()
	go carry(text.(string), ctx.DeferCommit())
}

// carry takes a letter to the post; the message counts then.
func carry(text string, commit func(error)) {
	time.Sleep(50 * time.Millisecond)
	post.Lock()
	post.letters = append(post.letters, text)
	post.Unlock()
	commit(nil)
}

func main() {
	goka.Serve(wa.Args[1:], goka.DefineGroup("letters",
		goka.Input("written", new(codec.String), write),
		goka.Persist(new(codec.Int64)),
		goka.Output("receipts", new(codec.String)),
	))
}
