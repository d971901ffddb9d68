package stage

import (
	"wallarooapi/internal/shown"
	"wallarooapi/internal/window"
	pb "wallarooapi/internal/workerpb"
)

// Show returns the states after these entries of a state log, formatted for display.
func (x *Executor) Show(entries [][]byte) (states []*pb.ShownState, err error) {
	err = apart("C507", "a state", func() error {
		loader := x.NewLoader()
		for _, entry := range entries {
			if err := loader.Load(entry); err != nil {
				return err
			}
		}
		if err := loader.End(); err != nil {
			return err
		}
		for table := range loader.Bucket().Tables() {
			for entry := range table.Entries() {
				value := entry.Value
				if windows, ok := value.(*window.KeyState); ok {
					value = windows.Accumulators()
				}
				if owner := x.stepOf(table.Port); owner != nil && owner.step.State != nil && owner.step.State.Show != nil {
					value = owner.step.State.Show(value)
				}
				states = append(states, &pb.ShownState{Port: uint32(table.Port), Key: []byte(entry.Key), Json: shown.JSON(value)})
			}
		}
		return nil
	})
	return states, err
}
