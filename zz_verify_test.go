package main
import ("testing";"os")
func TestZZ(t *testing.T){ for _, a := range [][]string{{"stripe","refund"}} { if w := os.Getenv("ONLY"); w != "" && w != a[0] { continue }; out,err:=runVerify(t,"--config","/tmp/vy/"+a[0]+".yaml","--action",a[1]); t.Logf("%s\n%v",out,err) } }
